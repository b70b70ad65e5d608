// Styles of modules: the names that Hugging Face matches.
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/graph/graph_builder.h>
#include <shardprop/mesh/topology.h>
#include <shardprop/plan/make_plan.h>
#include <shardprop/report/torch_styles.h>

#include <string>
#include <vector>

namespace shardprop {
namespace {

using testing::standard_library;
using testing::value_of;

// The styles of two layers, which read their weights in these layouts.
TorchStyles styles_of_layers(const std::string& path,
                             const std::vector<std::string>& layouts) {
  GraphBuilder b("layers", standard_library());
  ValueId x = value_of(
      b.add_input({.kind = InputKind::kUser,
                   .name = "x",
                   .meta = value_of(TensorMeta::parse("f32[64,32]"))}));
  PlanOptions options;
  options.optimizer = Optimizer::kNone;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    const std::string module = path + std::to_string(i) + ".up_proj";
    const ValueId w = value_of(
        b.add_input({.kind = InputKind::kParameter,
                     .name = "w" + std::to_string(i),
                     .qualified_name = module + ".weight",
                     .meta = value_of(TensorMeta::parse("f32[32,32]"))}));
    x = value_of(b.add_op("aten.linear.default",
                          {{"", TensorArg{0}}, {"", TensorArg{1}}}, {x, w},
                          "y" + std::to_string(i)))
            .front();
    options.pins.push_back(
        value_of(Pin::parse("used:" + module + ".weight=" + layouts[i])));
  }
  b.add_output({.value = x});
  const Graph graph = value_of(std::move(b).build());
  const Plan plan =
      value_of(make_plan(graph, value_of(DeviceMesh::parse("tp=2")),
                         default_topology(), standard_library(), options));
  return tensor_parallel_styles(plan, graph, standard_library());
}

TEST_CASE("layers of one style are one entry, without a note") {
  const TorchStyles styles =
      styles_of_layers("model.layers.", {"S(0)", "S(0)"});
  REQUIRE(styles.folded.size() == 1);
  CHECK(styles.folded[0].module == "model.layers.*.up_proj");
  CHECK(styles.notes.empty());
}

TEST_CASE("a weight that is read in full is replicated, not left out") {
  const TorchStyles styles = styles_of_layers("model.layers.", {"R", "R"});
  REQUIRE(styles.folded.size() == 1);
  CHECK(styles.folded[0] == ModuleStyle{"model.layers.*.up_proj", "replicate"});
}

TEST_CASE("layers of several styles have numbered names and a note") {
  const TorchStyles styles = styles_of_layers("model.layers.", {"S(0)", "R"});
  REQUIRE(styles.folded.size() == 2);
  CHECK(styles.folded[0].module == "model.layers.0.up_proj");
  REQUIRE(styles.notes.size() == 1);
  CHECK(styles.notes[0].find("Hugging Face refuses numbered names") !=
        std::string::npos);
  CHECK(styles.notes[0].find("used:model.layers.*.up_proj.weight") !=
        std::string::npos);
}

TEST_CASE("names that begin at the layers themselves get a note") {
  for (const char* path : {"layers.", ""}) {
    CAPTURE(path);
    const TorchStyles styles = styles_of_layers(path, {"S(0)", "S(0)"});
    REQUIRE(styles.notes.size() == 1);
    CHECK(styles.notes[0].find("the module that was exported") !=
          std::string::npos);
  }
}

}  // namespace
}  // namespace shardprop

// Notes on lost time: none is charged twice.
#include "plan/small_graphs.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/plan/make_plan.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

TEST_CASE("time lost to uneven heads is not attributed to a small batch too") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph =
      value_of(load_graph("examples/graphs/gpt2_124m_train.json.gz", library));
  PlanOptions options;
  options.recipe = value_of(Recipe::parse("fsdp=dp,megatron=tp"));
  options.time_limit_seconds = 1e6;
  options.work_limit = 0;
  const Plan plan =
      value_of(make_plan(graph, value_of(DeviceMesh::parse("dp=8,tp=8")),
                         default_topology(), library, options));
  int heads = 0;
  int batch = 0;
  for (const std::string& note : plan.notes) {
    CAPTURE(note);
    if (note.find("12 heads are not a multiple of tp=8") == 0) ++heads;
    if (note.find("a batch of 8 does not fill") == 0) ++batch;
  }
  CHECK(heads == 1);
  CHECK(batch == 0);
}

std::vector<std::string> notes_of(const char* path, const char* mesh,
                                  const char* recipe) {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = value_of(load_graph(path, library));
  PlanOptions options;
  if (*recipe != 0) options.recipe = value_of(Recipe::parse(recipe));
  return value_of(make_plan(graph, value_of(DeviceMesh::parse(mesh)),
                            default_topology(), library, options))
      .notes;
}

TEST_CASE("a mask for all heads is no single head") {
  const OpLibrary& library = testing::standard_library();
  GraphBuilder b("masked", library);
  const char* const heads = "bf16[4,4,16,16]";
  std::vector<ValueId> inputs;
  for (const char* name : {"query", "key", "value"}) {
    inputs.push_back(test::add_input(b, InputKind::kUser, name, heads));
  }
  inputs.push_back(
      test::add_input(b, InputKind::kUser, "mask", "bool[4,1,16,16]"));
  const ValueId out =
      test::add_op(b, "aten.scaled_dot_product_attention.default",
                   {{"", TensorArg{0}},
                    {"", TensorArg{1}},
                    {"", TensorArg{2}},
                    {"", TensorArg{3}}},
                   inputs, "attention");
  b.add_output({.value = out});
  // A launch, however it is split.
  const Plan plan = value_of(make_plan(value_of(std::move(b).build()),
                                       value_of(DeviceMesh::parse("dp=2")),
                                       default_topology(), library, {}));
  for (const std::string& note : plan.notes) {
    CAPTURE(note);
    CHECK(note.find("not a multiple") == std::string::npos);
  }
}

TEST_CASE("batch norm whose batch is cut sums over all ranks, and says so") {
  const char* const graph = "examples/graphs/tiny/resnet_train.json.gz";
  int said = 0;
  for (const std::string& note : notes_of(graph, "dp=2", "ddp=dp")) {
    if (note.find("batch norm") == std::string::npos) continue;
    ++said;
    CHECK(note.find("9 layers of batch norm take their statistics over dp, as "
                    "synchronised batch norm does") == 0);
    // Both passes send something.
    CHECK(note.find(" 0 us") == std::string::npos);
  }
  CHECK(said == 1);
  for (const std::string& note : notes_of(graph, "dp=1", "")) {
    CHECK(note.find("batch norm") == std::string::npos);
  }
}

bool has_note(const std::vector<std::string>& notes, std::string_view text) {
  return std::any_of(notes.begin(), notes.end(), [&](const std::string& note) {
    return note.find(text) != std::string::npos;
  });
}

TEST_CASE("a mesh dim that is named for a pipeline gets a note") {
  const char* const graph = "examples/graphs/tiny/vit_infer.json.gz";
  CHECK(has_note(notes_of(graph, "pp=2,dp=1", ""),
                 "pipelines are not planned: pp=2 shards tensors"));
  CHECK_FALSE(has_note(notes_of(graph, "dp=2", ""), "pipelines"));
  CHECK_FALSE(has_note(notes_of(graph, "pp=1,dp=2", ""), "pipelines"));
}

TEST_CASE("where memory is short, the text says which activations it counts") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = test::residual_training(library, 1, "64", "32", "64");
  const auto notes = [&](std::int64_t limit, Fusion fusion) {
    PlanOptions options;
    options.memory_limit = limit;
    options.fusion = fusion;
    return value_of(make_plan(graph, value_of(DeviceMesh::parse("2")),
                              default_topology(), library, options))
        .notes;
  };
  const char* const text = "activations are those that eager execution keeps";
  CHECK(has_note(notes(96 << 10, Fusion::kCompiler), text));
  CHECK_FALSE(has_note(notes(96 << 10, Fusion::kNone), text));
  CHECK_FALSE(has_note(notes(1 << 30, Fusion::kCompiler), text));
}

}  // namespace
}  // namespace shardprop

// The real files: what PyTorch writes, and the graphs under examples/.
#include <doctest/doctest.h>
#include <shardprop/io/load_graph.h>

#include "io/program_fixture.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

namespace {

std::vector<std::string> graph_files() {
  std::vector<std::string> files;
  for (const char* folder : {"examples/graphs", "examples/graphs/tiny"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.is_regular_file() && entry.path().extension() == ".gz") {
        files.push_back(entry.path().string());
      }
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

Graph load(const std::string& path, const LoadOptions& options = {}) {
  auto graph = load_graph(path, test_library(), options);
  if (!graph) FAIL(to_string(graph.error()));
  return *std::move(graph);
}

void check_invariants(const Graph& graph) {
  std::set<std::string> value_names;
  for (const Value& value : graph.values()) {
    CHECK(value_names.insert(value.name).second);
    if (value.producer.valid()) {
      const Node& producer = graph.node(value.producer);
      CHECK(producer.outputs[value.output_index] == value.id);
      CHECK(producer.op.outputs[value.output_index] == value.meta);
    }
    if (value.is_view()) {
      CHECK(graph.value(value.view_of).buffer == value.buffer);
      CHECK(value.view_of.index() < value.id.index());
    }
    for (const Use& use : value.consumers) {
      CHECK(graph.node(use.node).inputs[use.operand] == value.id);
    }
  }
  std::size_t uses = 0;
  for (const Node& node : graph.nodes()) {
    REQUIRE(node.inputs.size() == node.op.inputs.size());
    CHECK_FALSE(node.op.function->is_mutating());
    uses += node.inputs.size();
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Value& operand = graph.value(node.inputs[i]);
      CHECK(node.op.inputs[i] == operand.meta);
      if (operand.producer.valid()) CHECK(operand.producer < node.id);
    }
    if (node.phase == Phase::kForward) {
      CHECK_FALSE(node.forward_node.valid());
    } else if (node.forward_node.valid()) {
      CHECK(node.forward_node < node.id);
    }
  }
  std::size_t linked = 0;
  for (const Value& value : graph.values()) linked += value.consumers.size();
  CHECK(linked == uses);
}

}  // namespace

TEST_CASE("every example graph loads, and is sound") {
  const std::vector<std::string> files = graph_files();
  REQUIRE(files.size() >= 14);
  for (const std::string& file : files) {
    CAPTURE(file);
    const Graph graph = load(file);
    // One for each size that the program leaves open.
    CHECK(graph.notes().size() == graph.symbols().size());
    check_invariants(graph);
    const bool training = file.find("_train") != std::string::npos;
    CHECK(graph.has_backward() == training);
    if (!training) continue;
    // Every trained parameter has its gradient, of its own shape.
    int gradients = 0;
    for (const GraphInput& input : graph.inputs()) {
      if (input.kind != InputKind::kParameter) continue;
      const auto gradient = graph.gradient_of(input.value);
      REQUIRE(gradient);
      ++gradients;
      CHECK(graph.value(*gradient).meta.shape() ==
            graph.value(input.value).meta.shape());
    }
    CHECK(gradients > 0);
  }
}

TEST_CASE("inference agrees with what PyTorch recorded, strides included") {
  std::map<std::string, int> checked;
  for (const std::string& file : graph_files()) {
    CAPTURE(file);
    const Graph graph = load(file);
    for (const Node& node : graph.nodes()) {
      const auto inferred = test_library().infer_results(node.op);
      REQUIRE_MESSAGE(inferred, node.op_name());
      CAPTURE(node.name);
      REQUIRE(inferred->size() == node.op.output_slots.size());
      for (std::size_t i = 0; i < inferred->size(); ++i) {
        const std::int32_t output = node.op.output_slots[i];
        CHECK((output != OpSchema::kNotProduced) == (*inferred)[i].has_value());
        if (output == OpSchema::kNotProduced || !(*inferred)[i]) continue;
        CHECK(to_string(*(*inferred)[i]) ==
              to_string(node.op.outputs[static_cast<std::size_t>(output)]));
      }
      ++checked[node.op_name()];
    }
  }
  CHECK(checked.size() >= 70);
}

TEST_CASE("a training graph: phases, buffers, modules, forward ops") {
  const Graph graph = load("examples/graphs/tiny/resnet_train.json.gz");
  int updates = 0;
  for (const GraphOutput& output : graph.outputs()) {
    if (output.kind != OutputKind::kUpdate) continue;
    ++updates;
    CHECK(graph.value(output.target).input_kind == InputKind::kBuffer);
    CHECK(graph.update_of(output.target) == output.value);
  }
  CHECK(updates > 0);
  const auto nodes = graph.nodes();
  const auto count = [&](auto predicate) {
    return std::count_if(nodes.begin(), nodes.end(), predicate);
  };
  const auto backward =
      count([](const Node& n) { return n.phase == Phase::kBackward; });
  CHECK(backward > 0);
  CHECK(count([](const Node& n) { return n.forward_node.valid(); }) >
        backward * 9 / 10);
  CHECK(count([](const Node& n) { return !n.module_path.empty(); }) >
        static_cast<std::ptrdiff_t>(nodes.size()) * 8 / 10);
  CHECK(count([](const Node& n) { return !n.source.empty(); }) >
        static_cast<std::ptrdiff_t>(nodes.size()) * 9 / 10);
}

TEST_CASE("archives as torch.export.save writes them") {
  const Graph mlp = load("tests/data/pt2/mlp.pt2");
  CHECK(mlp.name() == "mlp");
  CHECK(mlp.hash() == load("tests/data/pt2/legacy.pt2").hash());
  CHECK(mlp.hash() == load("examples/graphs/tiny/mlp_dynamic.json.gz").hash());
  REQUIRE(mlp.symbols().size() == 1);
  CHECK(mlp.symbols()[0].min == 2);

  const Graph composite = load("tests/data/pt2/composite.pt2");
  check_invariants(composite);
  CHECK(composite.hash() ==
        load("examples/graphs/tiny/block_composite.json.gz").hash());

  const Graph train = load("tests/data/pt2/train.pt2");
  check_invariants(train);
  CHECK(train.has_backward());

  // The token that orders the checks is neither input nor output.
  const Graph linalg = load("tests/data/pt2/linalg.pt2");
  check_invariants(linalg);
  CHECK(linalg.inputs().size() == 2);
  CHECK(linalg.outputs().size() == 2);
  const auto is = [&](const char* op) {
    return std::any_of(linalg.nodes().begin(), linalg.nodes().end(),
                       [&](const Node& n) { return n.op_name() == op; });
  };
  CHECK(is("aten.linalg_cholesky_ex.default"));
  CHECK_FALSE(is("aten._linalg_check_errors.default"));
  CHECK_FALSE(is("higher_order.with_effects.default"));

  const auto several =
      load_graph("tests/data/pt2/two_models.pt2", test_library());
  REQUIRE_FALSE(several);
  CHECK(several.error().code == ErrorCode::kSeveralPrograms);
  LoadOptions options;
  options.program = "encoder";
  CHECK_FALSE(load("tests/data/pt2/two_models.pt2", options).nodes().empty());
}

// Tests tie-breaking: equal layers have equal layouts, or the plan reports the
// cost of that. A tensor that is sliced anyway is stored in shards.
#include "base/name_folding.h"
#include "plan/search/solve_plan.h"
#include "plan/search/tie_breaking.h"
#include "plan/small_graphs.h"
#include "support/property.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/plan/make_plan.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

// Returns the names that have more than one layout.
std::vector<std::string> ambiguous(
    const std::map<std::string, std::set<std::string>>& layouts) {
  std::vector<std::string> out;
  for (const auto& [name, of] : layouts) {
    if (of.size() > 1) out.push_back(name);
  }
  return out;
}

// Returns parameters that are equal except for numbers in their names and that
// have different layouts.
std::vector<std::string> unlike_parameters(const Plan& plan) {
  std::map<std::string, std::set<std::string>> layouts;
  for (const PlannedValue& value : plan.values) {
    if (value.kind != InputKind::kParameter) continue;
    std::string key = numbered_name(value.name).pattern + "[";
    for (const std::int64_t size : value.tensor.shape) {
      key += std::to_string(size) + ",";
    }
    layouts[key].insert(to_string(value.tensor.layout));
  }
  return ambiguous(layouts);
}

// Returns matmuls that have the same place in modules whose names differ in
// numbers only, and that are sharded differently.
std::vector<std::string> unlike_matmuls(const Plan& plan) {
  std::map<std::string, std::set<std::string>> splits;
  std::map<std::string, int> seen;  // of a module, so far
  for (const PlannedNode& node : plan.nodes) {
    if (node.kind != OpKind::kMatmul && node.kind != OpKind::kAttention) {
      continue;
    }
    const std::string name =
        node.op + (node.phase == Phase::kForward ? " forward " : " backward ");
    std::string key = numbered_name(node.module_path).pattern + " " + name +
                      std::to_string(seen[node.module_path + name]++);
    for (const PlannedResult& produced : node.outputs) {
      for (const std::int64_t size : produced.tensor.shape) {
        key += "," + std::to_string(size);
      }
    }
    std::string split;
    for (const PlannedInput& read : node.inputs) {
      split += to_string(read.layout) + " ";
    }
    for (const PlannedResult& produced : node.outputs) {
      split += "-> " + to_string(produced.tensor.layout);
    }
    splits[key].insert(split);
  }
  return ambiguous(splits);
}

// Returns the extra cost of equal layers with the same layouts, as a note of the
// plan has it; empty without such a note.
std::optional<std::int64_t> cost_of_alike(const Plan& plan) {
  for (const PlanNote& note : plan.notes) {
    if (const auto* unlike = std::get_if<UnlikeLayersNote>(&note)) {
      return unlike->alike_nanoseconds;
    }
  }
  return std::nullopt;
}

std::vector<std::string> graphs() {
  std::vector<std::string> out = {"examples/graphs/llama3_8b_train.json.gz"};
  for (const auto& entry :
       std::filesystem::directory_iterator("examples/graphs/tiny")) {
    const std::string path = entry.path().string();
    if (path.ends_with(".json.gz")) out.push_back(path);
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::string> unlike(const Plan& plan) {
  std::vector<std::string> out = unlike_parameters(plan);
  for (std::string& matmul : unlike_matmuls(plan)) {
    out.push_back(std::move(matmul));
  }
  return out;
}

TEST_CASE("a number in a name is a layer's if it is a component of its own") {
  // w1 and w3 of one layer are two parameters, w1 of two layers is one.
  const OpLibrary& library = testing::standard_library();
  GraphBuilder b("named", library);
  ValueId x = test::add_input(b, InputKind::kUser, "x", "f32[64,32]");
  for (const char* layer : {"0", "1"}) {
    for (const char* name : {"w1", "w3"}) {
      const ValueId w = value_of(b.add_input(
          {.kind = InputKind::kParameter,
           .name = std::string("p") + layer + name,
           .qualified_name = std::string("layers.") + layer + "." + name,
           .meta = value_of(TensorMeta::parse("f32[32,32]"))}));
      x = test::add_op(b, "aten.mm.default",
                       {{"", TensorArg{0}}, {"", TensorArg{1}}}, {x, w},
                       (std::string("mm") + layer + name).c_str());
    }
  }
  b.add_output({.value = x});
  const Graph graph = value_of(std::move(b).build());
  const PlanProblem problem =
      value_of(PlanProblem::create(graph, value_of(DeviceMesh::parse("2")),
                                   default_topology(), library, PlanOptions{}));
  std::set<std::set<std::string>> groups;
  for (const auto& group : like_parameters(problem)) {
    std::set<std::string> names;
    for (const PlanVariableId v : group) {
      const ValueId value = problem.variable(v).makes[0];
      names.insert(std::string(graph.value(value).display_name()));
    }
    groups.insert(names);
  }
  CHECK(groups ==
        std::set<std::set<std::string>>{{"layers.0.w1", "layers.1.w1"},
                                        {"layers.0.w3", "layers.1.w3"}});
}

TEST_CASE(
    "equal layers have equal layouts, or a note states the cost of that") {
  const OpLibrary& library = testing::standard_library();
  int which = 0;
  for (const std::string& path : graphs()) {
    const Graph graph = value_of(load_graph(path, library));
    for (const char* mesh : {"4", "2,4"}) {
      // Every day each graph on one of the meshes.
      const bool is_of_every_day = which % 4 == 0 || which % 4 == 3;
      ++which;
      if (!is_of_every_day && !testing::full_counts()) continue;
      CAPTURE(path);
      CAPTURE(std::string(mesh));
      PlanOptions options;
      options.optimizer = Optimizer::kAdamW;
      options.time_limit_seconds = 1e6;
      options.work_limit = 2'000'000'000;
      const Plan plan =
          value_of(make_plan(graph, value_of(DeviceMesh::parse(mesh)),
                             default_topology(), library, options));
      REQUIRE(plan.has_plan());
      const std::vector<std::string> differ = unlike(plan);
      if (differ.empty()) continue;
      CAPTURE(differ[0]);
      CHECK(cost_of_alike(plan).value_or(0) > 0);
    }
  }
}

TEST_CASE("the plan of least memory among equally cheap plans is found") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = value_of(
      load_graph("examples/graphs/tiny/mixtral_infer.json.gz", library));
  const auto problem_within = [&](std::optional<std::int64_t> limit) {
    PlanOptions options;
    options.memory_limit = limit;
    return value_of(PlanProblem::create(graph,
                                        value_of(DeviceMesh::parse("2,4")),
                                        default_topology(), library, options));
  };
  const PlanProblem free = problem_within(std::nullopt);
  const PlanSolution any =
      solve_plan(free, Budget({.seconds = 60}), {.break_ties = false});
  const PlanSolution small = solve_plan(free);
  REQUIRE(any.assignment.has_value());
  REQUIRE(small.evaluation.objective == any.evaluation.objective);
  REQUIRE(small.evaluation.peak_bytes < any.evaluation.peak_bytes);

  const PlanProblem tight = problem_within(small.evaluation.peak_bytes);
  const PlanSolution smaller = small_solution(tight, {}, any);
  CHECK(smaller.work > 0);
  const auto& found = smaller.assignment;
  REQUIRE(found.has_value());
  const PlanEvaluation judged = evaluate(tight, *found);
  CHECK(judged.broken.empty());
  CHECK(judged.objective == any.evaluation.objective);
  CHECK(judged.peak_bytes <= small.evaluation.peak_bytes);
  // A limit that no plan fits gives no plan.
  CHECK_FALSE(
      small_solution(problem_within(1), {}, any).assignment.has_value());
}

TEST_CASE("a note states the cost of equal layouts if pins separate layers") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = value_of(
      load_graph("examples/graphs/tiny/llama3_train.json.gz", library));
  PlanOptions options;
  options.time_limit_seconds = 1e6;
  options.layers = Layers::kFree;
  options.overlap = default_topology().overlap_discount.value;
  for (const char* pin : {"module:model.layers.1.mlp.* phase:forward=S(0)",
                          "module:model.layers.0.mlp.* phase:forward=R"}) {
    options.pins.push_back(value_of(Pin::parse(pin)));
  }
  const Plan plan = value_of(make_plan(graph, value_of(DeviceMesh::parse("2")),
                                       default_topology(), library, options));
  REQUIRE(plan.has_plan());
  CHECK(!unlike_matmuls(plan).empty());
  REQUIRE(!unlike_parameters(plan).empty());
  CHECK(cost_of_alike(plan).value_or(0) > 0);
}

}  // namespace
}  // namespace shardprop

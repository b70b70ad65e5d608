// Parameters pinned to every way to cut them: out of order, strided, in three
// mesh dims. There is a plan or a clear error, never a bug.
#include "support/result_checks.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/placement/tensor_spec.h>
#include <shardprop/plan/make_plan.h>

#include <algorithm>
#include <string>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

// Parameters that differ in shape and in what takes them, a few of each graph.
std::vector<std::string> some_parameters(const Graph& graph, std::size_t most) {
  std::vector<std::string> names;
  std::vector<std::string> kinds;
  for (const GraphInput& input : graph.inputs()) {
    const Value& value = graph.value(input.value);
    if (input.kind != InputKind::kParameter || value.meta.rank() == 0) continue;
    std::string kind = to_string(value.meta);
    for (const Use& user : value.consumers) {
      kind += " " + graph.node(user.node).op_name();
    }
    if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) continue;
    kinds.push_back(std::move(kind));
    names.push_back(value.qualified_name);
    if (names.size() == most) break;
  }
  return names;
}

int check_pins(const std::string& graph_name, const char* mesh,
               const std::vector<const char*>& layouts, std::size_t most) {
  const OpRegistry registry;
  const RuleBook rules;
  const Graph graph = value_of(load_graph(
      "examples/graphs/tiny/" + graph_name + ".json.gz", registry));
  int planned = 0;
  for (const std::string& name : some_parameters(graph, most)) {
    for (const char* layout : layouts) {
      PlanOptions options;
      options.time_limit_seconds = 1e6;
      options.work_limit = 4'000'000;
      options.pins.push_back(value_of(Pin::parse(name + "=" + layout)));
      CAPTURE(graph_name);
      CAPTURE(std::string(mesh));
      CAPTURE(to_string(options.pins[0]));
      const auto plan =
          make_plan(graph, value_of(DeviceMesh::parse(mesh)),
                    default_topology(), rules, registry, options);
      if (!plan) {
        CHECK(plan.error().code == ErrorCode::kPinDoesNotFit);
        CHECK(!plan.error().help.empty());
        continue;
      }
      if (!plan->has_plan()) continue;
      ++planned;
      const PlanSummary sum = summarize(*plan);
      CHECK(*plan->objective_nanoseconds ==
            sum.compute_nanoseconds + sum.communication_nanoseconds -
                sum.hidden_nanoseconds);
      const auto pinned = std::find_if(
          plan->values.begin(), plan->values.end(),
          [&](const PlannedValue& value) { return value.name == name; });
      REQUIRE(pinned != plan->values.end());
      CHECK(pinned->tensor.layout ==
            canonical(options.pins[0].layout, plan->mesh,
                      pinned->tensor.shape));
    }
  }
  return planned;
}

constexpr const char* kSmall[] = {"llama3_train", "gpt2_train", "vit_infer",
                                  "t5_train", "mlp_dynamic"};

TEST_CASE("orders and strides on two mesh dims") {
  const std::vector<const char*> layouts = {
      "S(0)@1,S(0)@0",  "S(1)@1,S(1)@0", "SS(0,2),S(0)",  "S(0),SS(0,2)",
      "SS(0,4),SS(0,2)", "SS(1,2),S(0)", "S(0),SS(1,4)",  "SS(0,2)@1,S(0)@0",
      "R,SS(0,2)",       "SS(0,3),R",    "S(1),SS(1,2)"};
  int planned = 0;
  for (const char* graph : kSmall) {
    planned += check_pins(graph, "2,2", layouts, 4);
  }
  CHECK(planned > 60);
}

TEST_CASE("orders and strides on three mesh dims") {
  const std::vector<const char*> layouts = {
      "S(0)@2,S(0)@1,S(0)@0", "S(0)@1,S(0)@0,S(1)", "SS(0,2),R,S(0)",
      "S(1)@1,R,S(1)@0",      "S(0)@1,S(0)@2,S(0)@0"};
  int planned = 0;
  for (const char* graph : {"llama3_train", "mlp_dynamic"}) {
    planned += check_pins(graph, "2,2,2", layouts, 2);
  }
  CHECK(planned > 5);
}

}  // namespace
}  // namespace shardprop

// Plans whose operators shard factors in strided pieces, or in another order
// than the mesh, because a view or a pin demands it.
#include "plan/invariants.h"
#include "plan/small_graphs.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/plan/judge_plan.h>
#include <shardprop/plan/make_plan.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace shardprop {
namespace {

using test::node_of;
using testing::value_of;

// Two linear layers as PyTorch exports them: [batch, 8192, 1024] becomes rows
// before each mm.
Graph flattened_mlp(const OpLibrary& library, std::int64_t batch) {
  GraphBuilder b("flattened_mlp", library);
  const std::int64_t rows = batch * 8192;
  const auto view = [&](ValueId of, std::vector<std::int64_t> size,
                        const char* name) {
    return test::add_op(b, "aten.view.default",
                        {{"", TensorArg{0}}, {"", std::move(size)}}, {of},
                        name);
  };
  const std::vector<GivenArgument> two = {{"", TensorArg{0}},
                                          {"", TensorArg{1}}};
  const ValueId x =
      test::add_input(b, InputKind::kUser, "x",
                      ("f32[" + std::to_string(batch) + ",8192,1024]").c_str());
  const ValueId w1 =
      test::add_input(b, InputKind::kParameter, "w1", "f32[1024,4096]");
  const ValueId w2 =
      test::add_input(b, InputKind::kParameter, "w2", "f32[4096,1024]");
  const ValueId in = view(x, {rows, 1024}, "in");
  const ValueId up = test::add_op(b, "aten.mm.default", two, {in, w1}, "up");
  const ValueId apart = view(up, {batch, 8192, 4096}, "apart");
  const ValueId act = test::add_op(b, "aten.gelu.default", {{"", TensorArg{0}}},
                                   {apart}, "act");
  const ValueId merged = view(act, {rows, 4096}, "merged");
  const ValueId down =
      test::add_op(b, "aten.mm.default", two, {merged, w2}, "down");
  b.add_output({.value = view(down, {batch, 8192, 1024}, "y")});
  return value_of(std::move(b).build());
}

struct Planning {
  const char* mesh = "4";
  std::vector<const char*> pins;
};

Plan planned(const Graph& graph, const Planning& how) {
  PlanOptions options;
  options.gap = 0;
  for (const char* pin : how.pins) {
    options.pins.push_back(value_of(Pin::parse(pin)));
  }
  Plan plan = value_of(make_plan(graph, value_of(DeviceMesh::parse(how.mesh)),
                                 default_topology(),
                                 testing::standard_library(), options));
  test::check_plan(plan);
  return plan;
}

std::string sharding_of_rows(const Plan& plan, const char* node) {
  const FactorShardings& shardings = node_of(plan, node).shardings;
  return shardings.is_mesh_order() ? "mesh order" : to_string(shardings.of(0));
}

bool is_in_mesh_order(const Plan& plan) {
  return std::all_of(
      plan.nodes.begin(), plan.nodes.end(),
      [](const PlannedNode& node) { return node.shardings.is_mesh_order(); });
}

TEST_CASE("sharded tokens of several sequences stay where they are") {
  const Graph graph = flattened_mlp(testing::standard_library(), 2);
  const Planning pinned{.mesh = "4", .pins = {"x=S(1)"}};
  for (const Planning& how : {Planning{}, pinned}) {
    const Plan plan = planned(graph, how);
    CHECK(plan.status == PlanStatus::kOptimal);
    CHECK(plan.copies.empty());
    CHECK(plan.summary.communication_nanoseconds == 0);
    CHECK(sharding_of_rows(plan, "up") == "SS(0,2)");
    CHECK(sharding_of_rows(plan, "down") == "SS(0,2)");
    CHECK(to_string(plan.outputs[0].value.layout) == "S(1)");
  }
}

TEST_CASE("a batch that all ranks divide demands no strides, a pin does") {
  const Graph graph = flattened_mlp(testing::standard_library(), 8);
  CHECK(is_in_mesh_order(planned(graph, {})));
  const Plan plan = planned(graph, {.mesh = "4", .pins = {"x=S(1)"}});
  CHECK(plan.summary.communication_nanoseconds == 0);
  CHECK(sharding_of_rows(plan, "up") == "SS(0,8)");
}

TEST_CASE("batch and tokens share the rows of a matmul") {
  // Mesh dim 0 shards the batch of 4 into two, and mesh dim 1 the tokens of
  // each.
  const Graph four = flattened_mlp(testing::standard_library(), 4);
  const Plan strided = planned(four, {.mesh = "2,4"});
  CHECK(strided.summary.communication_nanoseconds == 0);
  // Only mesh dim 1 divides a batch of 2, so mesh dim 0 shards the tokens.
  const Graph two = flattened_mlp(testing::standard_library(), 2);
  const Plan in_order = planned(two, {.mesh = "4,2"});
  CHECK(in_order.summary.communication_nanoseconds == 0);
  CHECK(sharding_of_rows(in_order, "up") == "S(0)@1,S(0)@0");
}

// "aten.mm.default mk,kn->mn m SS(0,2) x2"
std::vector<std::string> demanded_in_words(const Plan& plan) {
  std::vector<std::string> out;
  for (const DemandedSharding& one : plan.demanded_shardings.demanded) {
    out.push_back(one.op + " " + one.rule + " " + one.factor + " " +
                  to_string(one.sharding) + " x" +
                  std::to_string(one.operators));
  }
  return out;
}

TEST_CASE("a plan lists the shardings that its graph demands") {
  const Graph graph = flattened_mlp(testing::standard_library(), 2);
  const Plan plan = planned(graph, {});
  const std::vector<std::string> words = demanded_in_words(plan);
  CHECK(std::count(words.begin(), words.end(),
                   "aten.mm.default mk,kn->mn m SS(0,2) x2") == 1);
  CHECK(plan.demanded_shardings.most_of_factor == 8);
  CHECK(plan.demanded_shardings.most_of_value == 8);
  CHECK(plan.demanded_shardings.left_out_of_factors == 0);
  CHECK(plan.demanded_shardings.left_out_of_values == 0);
  const JudgedPlan judged =
      value_of(judge_plan(plan, graph, testing::standard_library()));
  CHECK(judged.plan.demanded_shardings == plan.demanded_shardings);
  const Graph divided = flattened_mlp(testing::standard_library(), 8);
  CHECK(planned(divided, {}).demanded_shardings.empty());
}

TEST_CASE("a plan states how many demands the caps leave out") {
  // Eleven operators in a chain, each pinned to a layout of its own.
  GraphBuilder b("chain", testing::standard_library());
  ValueId last = test::add_input(b, InputKind::kUser, "x", "f32[55440]");
  std::vector<std::string> pins;
  for (int i = 0; i < 11; ++i) {
    const std::string name = "r" + std::to_string(i);
    last = test::add_op(b, "aten.relu.default", {{"", TensorArg{0}}}, {last},
                        name.c_str());
    pins.push_back(name + "=SS(0," + std::to_string(i + 2) + ")");
  }
  b.add_output({.value = last});
  const Graph graph = value_of(std::move(b).build());
  Planning how{.mesh = "2"};
  for (const std::string& pin : pins) how.pins.push_back(pin.c_str());
  const DemandedShardings demanded = planned(graph, how).demanded_shardings;
  CHECK(demanded.demanded.size() == 11);
  CHECK(demanded.left_out_of_values > 0);
}

TEST_CASE("an operator keeps the order of a pinned input") {
  const Graph graph = test::mlp(testing::standard_library());
  const Plan plan =
      planned(graph, {.mesh = "2,2", .pins = {"x=S(0)@1,S(0)@0"}});
  CHECK(sharding_of_rows(plan, "up") == "S(0)@1,S(0)@0");
  CHECK(sharding_of_rows(plan, "act") == "S(0)@1,S(0)@0");
  const Plan strided = planned(graph, {.mesh = "4", .pins = {"act=SS(0,2)"}});
  CHECK(sharding_of_rows(strided, "act") == "SS(0,2)");
}

TEST_CASE("a plan with strided factors costs the same when it is judged") {
  const Graph graph = flattened_mlp(testing::standard_library(), 2);
  const Plan plan = planned(graph, {.mesh = "4", .pins = {"x=S(1)"}});
  const JudgedPlan judged =
      value_of(judge_plan(plan, graph, testing::standard_library()));
  CHECK(judged.differences.empty());
  CHECK(judged.plan.objective_nanoseconds == plan.objective_nanoseconds);
}

}  // namespace
}  // namespace shardprop

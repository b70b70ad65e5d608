#include "plan/invariants.h"
#include "plan/small_graphs.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/plan/make_plan.h>

#include <algorithm>

namespace shardprop {
namespace {

using testing::value_of;

Plan planned(const Graph& graph, const OpLibrary& library, const char* mesh,
             const PlanOptions& options = {}) {
  return value_of(make_plan(graph, value_of(DeviceMesh::parse(mesh)),
                            default_topology(), library, options));
}

TEST_CASE("every plan keeps its invariants") {
  const OpLibrary& library = testing::standard_library();
  const Graph graphs[] = {test::mlp(library), test::linear_training(library)};
  for (const Graph& graph : graphs) {
    for (const char* mesh : {"1", "2", "3", "2,2", "2,4", "2,2,2"}) {
      for (const double overlap : {0.0, 0.5}) {
        CAPTURE(graph.name());
        CAPTURE(mesh);
        PlanOptions options;
        options.overlap = overlap;
        options.optimizer = Optimizer::kAdamW;
        test::check_plan(planned(graph, library, mesh, options));
      }
    }
  }
}

TEST_CASE("on one rank nothing moves and the plan is proven") {
  const OpLibrary& library = testing::standard_library();
  const Plan plan = planned(test::mlp(library), library, "1");
  CHECK(plan.status == PlanStatus::kOptimal);
  CHECK(plan.copies.empty());
  CHECK(plan.summary.communication_nanoseconds == 0);
}

TEST_CASE("a gradient ends in its parameter's layout, a buffer in its first") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = test::linear_training(library);
  PlanOptions options;
  options.pins.push_back(value_of(Pin::parse("net.w=S(0)")));
  options.pins.push_back(value_of(Pin::parse("gw=P(sum)")));
  options.optimizer = Optimizer::kNone;
  const Plan plan = planned(graph, library, "2", options);
  test::check_plan(plan);
  const auto gradient = std::find_if(
      plan.outputs.begin(), plan.outputs.end(),
      [](const PlannedOutput& o) { return o.kind == OutputKind::kGradient; });
  REQUIRE(gradient != plan.outputs.end());
  CHECK(to_string(gradient->value.layout) == "S(0)");
  REQUIRE(gradient->value.copy);
  const PlannedCopy& copy = plan.copies[*gradient->value.copy];
  REQUIRE(copy.steps.size() == 1);
  CHECK(copy.steps[0].kind == CollectiveKind::kReduceScatter);
  CHECK(copy.steps[0].bytes_per_rank == 1024 * 1024 * 4 / 2);
  CHECK(copy.produced_at == 3);  // right behind gw
  CHECK(copy.freed_at == 4);
}

TEST_CASE("consumers that want the same layout share one copy") {
  const OpLibrary& library = testing::standard_library();
  GraphBuilder b("shared", library);
  const ValueId x = test::add_input(b, InputKind::kUser, "x", "f32[1024,1024]");
  const ValueId w =
      test::add_input(b, InputKind::kParameter, "w", "f32[1024,1024]");
  const std::vector<GivenArgument> two = {{"", TensorArg{0}},
                                          {"", TensorArg{1}}};
  for (const char* name : {"m0", "m1", "m2"}) {
    b.add_output(
        {.value = test::add_op(b, "aten.mm.default", two, {x, w}, name)});
  }
  const Graph graph = value_of(std::move(b).build());
  PlanOptions options;
  for (const char* pin : {"net.w=S(0)", "x=S(0)", "m?=S(0)"}) {
    options.pins.push_back(value_of(Pin::parse(pin)));
  }
  const Plan plan = planned(graph, library, "4", options);
  test::check_plan(plan);
  REQUIRE(plan.copies.size() == 1);
  CHECK(plan.copies[0].from == "net.w");
  CHECK(plan.copies[0].produced_at == 0);
  CHECK(plan.copies[0].freed_at == 2);
  CHECK(plan.summary.collectives[static_cast<std::size_t>(
            CollectiveKind::kAllGather)] == 1);
  // A rank receives a quarter of w from each of the three other ranks.
  CHECK(plan.summary.bytes_per_rank == 3 * 1024 * 1024);
}

TEST_CASE("overlap hides a share of parameter gathers, and totals say both") {
  const OpLibrary& library = testing::standard_library();
  PlanOptions options;
  for (const char* pin : {"net.w2=S(0)", "x=S(0)", "up=S(0)", "down=S(0)"}) {
    options.pins.push_back(value_of(Pin::parse(pin)));
  }
  options.overlap = 0.5;
  const Plan plan = planned(test::mlp(library), library, "2", options);
  test::check_plan(plan);
  REQUIRE(plan.copies.size() >= 1);
  CHECK(plan.summary.overlapped_nanoseconds > 0);
  CHECK(plan.summary.overlapped_nanoseconds <=
        plan.summary.communication_nanoseconds / 2 + 1);
}

TEST_CASE("peak memory is the sum of the tensors that live at once") {
  const OpLibrary& library = testing::standard_library();
  // x 8 KiB, w1 and w2 16 KiB each, up 32 KiB, act 32 KiB, down 8 KiB: most is
  // held while relu runs.
  const Plan plan = planned(test::mlp(library), library, "1");
  CHECK(plan.memory.parameter_bytes == 32 * 1024);
  CHECK(plan.memory.peak_bytes == (8 + 32 + 64) * 1024);
  CHECK(plan.memory.peak_at == 1);
  PlanOptions options;
  options.optimizer = Optimizer::kAdamW;
  const Graph training = test::linear_training(library);
  const Plan adamw = planned(training, library, "1", options);
  CHECK(adamw.memory.optimizer_bytes == 2 * adamw.memory.parameter_bytes);
  CHECK(adamw.optimizer_nanoseconds > 0);
}

TEST_CASE("an operator without a strategy runs replicated, or fails strictly") {
  const auto mine = value_of(testing::standard_library().with(
      {.declaration = "mylib::odd(Tensor x) -> Tensor"}));
  const OpLibrary& library = *mine;
  GraphBuilder b("odd", library);
  const ValueId x = test::add_input(b, InputKind::kUser, "x", "f32[8,8]");
  NewNode node;
  node.name = "odd";
  node.op = value_of(make_op_schema(library.find("mylib.odd.default"),
                                    {{"", TensorArg{0}}}, {b.meta(x)}));
  node.op.outputs = {b.meta(x)};
  node.op.output_slots = {0};
  node.inputs = {x};
  b.add_output({.value = value_of(b.add_node(std::move(node))).front()});
  const Graph graph = value_of(std::move(b).build());
  const Plan plan = planned(graph, library, "2");
  REQUIRE(plan.unsupported.size() == 1);
  CHECK(plan.unsupported[0].op == "mylib.odd.default");
  CHECK(plan.unsupported[0].count == 1);
  CHECK(plan.status == PlanStatus::kFeasible);
  CHECK(to_string(plan.nodes[0].inputs[0].layout) == "R");
  PlanOptions strict;
  strict.strict = true;
  CHECK_CODE(make_plan(graph, value_of(DeviceMesh::parse("2")),
                       default_topology(), library, strict),
             ErrorCode::kNoStrategy);
}

TEST_CASE("an unused view has a layout that its input allows") {
  const OpLibrary& library = testing::standard_library();
  GraphBuilder b("unused", library);
  const std::vector<GivenArgument> one = {{"", TensorArg{0}}};
  const std::vector<std::int64_t> sizes = {64, 3, 12};
  const ValueId x = test::add_input(b, InputKind::kUser, "x", "f32[64,36]");
  const ValueId h = test::add_op(b, "aten.relu.default", one, {x}, "h");
  // The half of 36 is 18, not a multiple of 12: the view cannot keep h's
  // shards.
  const ValueId viewed = test::add_op(
      b, "aten.view.default", {{"", TensorArg{0}}, {"", sizes}}, {h}, "shown");
  test::add_op(
      b, "aten.transpose.int",
      {{"", TensorArg{0}}, {"", std::int64_t{0}}, {"", std::int64_t{1}}},
      {viewed}, "unused");
  b.add_output({.value = test::add_op(b, "aten.neg.default", one, {h}, "y")});
  const Graph graph = value_of(std::move(b).build());
  PlanOptions options;
  options.pins.push_back(value_of(Pin::parse("h=S(1)")));
  const Plan plan = planned(graph, library, "2", options);
  test::check_plan(plan);
  CHECK(plan.status == PlanStatus::kOptimal);
  REQUIRE(plan.nodes.size() == 4);
  CHECK(to_string(plan.nodes[0].outputs[0].tensor.layout) == "S(1)");
  CHECK(to_string(plan.nodes[1].inputs[0].layout) ==
        to_string(plan.nodes[1].outputs[0].tensor.layout));
  CHECK(plan.nodes[2].name == "unused");
}

TEST_CASE("the same problem gets the same plan") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = test::mlp(library);
  PlanOptions options;
  options.work_limit = 100'000;
  Plan a = planned(graph, library, "2,2", options);
  Plan b = planned(graph, library, "2,2", options);
  a.solve_seconds = b.solve_seconds = 0;
  CHECK(a == b);
}

}  // namespace
}  // namespace shardprop

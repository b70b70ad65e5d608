// What verify() reports, and what it refuses.

#include "plan/small_graphs.h"
#include "verify/verified.h"

namespace shardprop {
namespace {

using namespace testing;

TEST_CASE("a report names outputs, collectives and bytes") {
  const Graph graph = tiny_graph("mlp_dynamic");
  const Plan plan = planned(graph, "2,2");
  const VerifyReport report = value_of(verify(plan, graph, shared_library()));
  CHECK(report.ok);
  CHECK_FALSE(report.mismatch);
  CHECK(report.outputs.size() == plan.outputs.size());
  for (const VerifiedOutput& output : report.outputs) {
    CHECK(output.max_error < 1e-9);
  }
  CHECK(report.planned_peak_bytes == plan.memory.peak_bytes);
  CHECK(report.planned == report.counted);
}

TEST_CASE("floats in their own dtypes agree within their rounding") {
  const Graph graph = tiny_graph("mlp_dynamic");
  const Plan plan = planned(graph, "2,2");
  VerifyOptions options;
  options.own_dtypes = true;
  CHECK(value_of(verify(plan, graph, shared_library(), options)).ok);
  options.tolerance = 0;
  const VerifyReport exact =
      value_of(verify(plan, graph, shared_library(), options));
  CHECK(exact.counted_bytes == exact.planned_bytes);
}

TEST_CASE("an operator that the reference lacks is named") {
  GraphBuilder b("airy", *shared_library());
  const ValueId x = test::add_input(b, InputKind::kUser, "x", "f32[4,4]");
  const ValueId y = test::add_op(b, "aten.special_airy_ai.default",
                                 {{"", TensorArg{0}}}, {x}, "airy");
  b.add_output({.value = y});
  const Graph graph = value_of(std::move(b).build());
  const auto expected =
      Expected::create(graph, shared_library(), Optimizer::kNone, {});
  CHECK_CODE(expected, ErrorCode::kNoReference);
  CHECK(expected.error().location.find("airy") != std::string::npos);
}

TEST_CASE("a plan for another graph is refused") {
  const Graph one = tiny_graph("mlp_dynamic");
  const Graph other = tiny_graph("block_composite");
  CHECK_CODE(verify(planned(one, "2"), other, shared_library()),
             ErrorCode::kPlanOtherGraph);
}

}  // namespace
}  // namespace shardprop

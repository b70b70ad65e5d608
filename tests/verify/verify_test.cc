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
  CHECK(report.findings.empty());
}

TEST_CASE("a plan that predicts otherwise what is sent or held is a finding") {
  const Graph graph = tiny_graph("llama3_infer");
  const Plan plan = planned(graph, "2,2");
  Plan holds = plan;
  holds.memory.peak_bytes = 100;
  const VerifyReport held = value_of(verify(holds, graph, shared_library()));
  CHECK_FALSE(held.ok);
  CHECK_FALSE(held.mismatch);
  REQUIRE(held.findings.size() == 1);
  CHECK(held.findings[0].find("at most 100") != std::string::npos);
  Plan sends = plan;
  REQUIRE(!sends.copies.empty());
  for (PlannedCopy& copy : sends.copies) {
    if (copy.steps.empty() || copy.steps[0].bytes_per_rank == 0) continue;
    copy.steps[0].bytes_per_rank += 8;
    sends.summary.bytes_per_rank += 8;
    break;
  }
  const VerifyReport sent = value_of(verify(sends, graph, shared_library()));
  CHECK_FALSE(sent.ok);
  CHECK(sent.counted == sent.planned);
  REQUIRE(sent.findings.size() == 1);
  CHECK(sent.findings[0].find("where the plan says") != std::string::npos);
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

// Prefixes and the largest of all shards, by what the ranks tell each other.
TEST_CASE("operators gather inside their own programs") {
  GraphBuilder b("scans", *shared_library());
  const ValueId x = test::add_input(b, InputKind::kUser, "x", "f32[15,10]");
  const auto scan = [&](const char* op, const char* name) {
    const ValueId made = test::add_op(
        b, op, {{"", TensorArg{0}}, {"dim", std::int64_t{0}}}, {x}, name);
    b.add_output({.value = made});
  };
  scan("aten.cumsum.default", "sums");
  scan("aten.cumprod.default", "products");
  const Graph graph = value_of(std::move(b).build());
  for (const std::string mesh : {"2", "3", "2,2", "8"}) {
    CAPTURE(mesh);
    const bool is_two = mesh.size() > 1;
    PlanOptions options = quick_options();
    for (const char* name : {"sums=S(0)", "products=S(0)"}) {
      options.pins.push_back(
          value_of(Pin::parse(name + std::string(is_two ? ",S(0)" : ""))));
    }
    const Plan plan = planned(graph, mesh, options);
    std::size_t gathers = 0;
    for (const PlannedNode& node : plan.nodes) {
      for (const CollectiveStep& step : node.inside) {
        gathers += step.kind == CollectiveKind::kAllGather ? 1 : 0;
      }
    }
    CHECK(gathers == 4);
    const VerifyReport report = value_of(verify(plan, graph, shared_library()));
    CHECK(report.ok);
    CHECK(report.counted == report.planned);
    CHECK(report.counted_bytes == report.planned_bytes);
  }
}

TEST_CASE("a plan for another graph is refused") {
  const Graph one = tiny_graph("mlp_dynamic");
  const Graph other = tiny_graph("block_composite");
  CHECK_CODE(verify(planned(one, "2"), other, shared_library()),
             ErrorCode::kPlanOtherGraph);
}

}  // namespace
}  // namespace shardprop

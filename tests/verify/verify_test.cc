// Tests the reports of verify() and the inputs that it refuses.

#include "plan/small_graphs.h"
#include "verify/verified.h"

#include <shardprop/program/footprint.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

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
  CHECK(report.planned_peak_bytes == plan.memory.unfused_peak_bytes);
  CHECK(report.planned == report.counted);
  CHECK(report.findings.empty());
}

TEST_CASE("a plan with wrong bytes sent or kept is a finding") {
  const Graph graph = tiny_graph("llama3_infer");
  const Plan plan = planned(graph, "2,2");
  Plan holds = plan;
  holds.memory.unfused_peak_bytes = 100;
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

TEST_CASE("a cache that is written in place counts once, as it was planned") {
  constexpr std::int64_t kCache = 16 * 1024;
  for (const char* mesh : {"1", "2", "2,2"}) {
    for (const bool reads_old : {false, true}) {
      CAPTURE(mesh);
      CAPTURE(reads_old);
      const Graph graph = test::decoding(*shared_library(), true, reads_old);
      const Plan plan = planned(graph, mesh);
      const VerifyReport report =
          value_of(verify(plan, graph, shared_library()));
      CHECK(report.ok);
      CHECK(report.peak_bytes <= plan.memory.unfused_peak_bytes);
      // A plan also counts what a redistribution takes while it runs.
      if (!reads_old)
        CHECK(report.peak_bytes == plan.memory.unfused_peak_bytes);
      const std::vector<std::int64_t> held =
          live_bytes(value_of(lower(plan, graph, *shared_library())));
      CHECK(*std::max_element(held.begin(), held.end()) ==
            plan.memory.unfused_peak_bytes);
      if (std::string_view(mesh) != "1") continue;
      CHECK((report.peak_bytes < kCache + 1024) == !reads_old);
      CHECK((report.peak_bytes > 2 * kCache) == reads_old);
    }
  }
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

TEST_CASE("floats of 8 bits run in f64 only") {
  GraphBuilder b("scaled", *shared_library());
  const auto input = [&](const char* name, const char* meta) {
    return test::add_input(b, InputKind::kUser, name, meta);
  };
  const ValueId y = test::add_op(
      b, "aten._scaled_mm.default",
      {{"", TensorArg{0}},
       {"", TensorArg{1}},
       {"", TensorArg{2}},
       {"", TensorArg{3}},
       {"out_dtype", DType::kBF16}},
      {input("x", "f8e4m3fn[32,64]"), input("weight", "f8e4m3fn[64,16]{1,64}"),
       input("scale_x", "f32[]"), input("scale_weight", "f32[]")},
      "y");
  b.add_output({.value = y});
  const Graph graph = value_of(std::move(b).build());
  const Plan plan = planned(graph, "2");
  CHECK(value_of(verify(plan, graph, shared_library())).ok);
  VerifyOptions options;
  options.own_dtypes = true;
  const auto report = verify(plan, graph, shared_library(), options);
  CHECK_CODE(report, ErrorCode::kNoReference);
  CHECK(report.error().message == "the reference does not compute in f8e4m3fn");
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

TEST_CASE("what distributions draw is the same however it is laid out") {
  const GivenArgument self = {"", TensorArg{0}};
  const std::vector<std::pair<const char*, std::vector<GivenArgument>>> ops = {
      {"aten.cauchy.default", {self, {"median", 2.0}, {"sigma", 0.5}}},
      {"aten.geometric.default", {self, {"p", 0.25}}},
      {"aten.feature_dropout.default", {self, {"p", 0.5}, {"train", true}}},
      {"aten.alpha_dropout.default", {self, {"p", 0.5}, {"train", true}}},
      {"aten.feature_alpha_dropout.default",
       {self, {"p", 0.5}, {"train", true}}},
      {"aten.feature_dropout.default", {self, {"p", 0.5}, {"train", false}}}};
  for (const auto& [op, args] : ops) {
    for (const char* layout : {"y=S(0),S(1)", "y=S(2),S(0)", "y=S(3),R"}) {
      CAPTURE(op);
      CAPTURE(layout);
      GraphBuilder b("drawn", *shared_library());
      const ValueId x =
          test::add_input(b, InputKind::kUser, "x", "f32[4,6,2,8]");
      b.add_output({.value = test::add_op(b, op, args, {x}, "y")});
      const Graph graph = value_of(std::move(b).build());
      PlanOptions options = quick_options();
      options.pins = {value_of(Pin::parse(layout))};
      const Plan plan = planned(graph, "2,2", options);
      CHECK(value_of(verify(plan, graph, shared_library())).ok);
    }
  }
}

TEST_CASE("ids of a table are sampled within the table") {
  GraphBuilder b("lookups", *shared_library());
  const auto input = [&](const char* name, const char* meta) {
    return test::add_input(b, InputKind::kUser, name, meta);
  };
  const ValueId places = input("places", "i64[3,40]");
  const ValueId table = input("table", "f32[2,5]");
  const auto embed = [&](ValueId kinds, const char* name) {
    b.add_output(
        {.value = test::add_op(b, "aten.embedding.default",
                               {{"", TensorArg{0}}, {"", TensorArg{1}}},
                               {table, kinds}, name)});
  };
  embed(test::add_op(b, "aten.gather.default",
                     {{"", TensorArg{0}},
                      {"dim", std::int64_t{1}},
                      {"index", TensorArg{1}}},
                     {input("gathered", "i64[3,50]"), places}, "gather"),
        "of_gather");
  embed(test::add_op(b, "aten.index_select.default",
                     {{"", TensorArg{0}},
                      {"dim", std::int64_t{0}},
                      {"index", TensorArg{1}}},
                     {input("selected", "i64[50]"), input("rows", "i64[30]")},
                     "select"),
        "of_select");
  embed(test::add_op(
            b, "aten.index.Tensor",
            {{"", TensorArg{0}}, {"indices", std::vector<TensorArg>{{1}}}},
            {input("indexed", "i64[50]"), places}, "index"),
        "of_index");
  embed(test::add_op(
            b, "aten.repeat.default",
            {{"", TensorArg{0}}, {"repeats", std::vector<std::int64_t>{2}}},
            {input("repeated", "i64[50]")}, "repeat"),
        "of_repeat");
  const Graph graph = value_of(std::move(b).build());
  CHECK(value_of(verify(planned(graph, "2"), graph, shared_library())).ok);
}

TEST_CASE("integers are divided by what is not zero") {
  GraphBuilder b("divisions", *shared_library());
  const ValueId x = test::add_input(b, InputKind::kUser, "x", "i64[60]");
  const auto divide = [&](const char* op, const char* name,
                          std::vector<GivenArgument> more = {}) {
    const std::string own = std::string("by_") + name;
    const ValueId by = test::add_op(
        b, "aten.unsqueeze.default",
        {{"", TensorArg{0}}, {"dim", std::int64_t{0}}},
        {test::add_input(b, InputKind::kUser, own.c_str(), "i64[60]")},
        (own + "_row").c_str());
    std::vector<GivenArgument> args = {{"", TensorArg{0}}, {"", TensorArg{1}}};
    args.insert(args.end(), more.begin(), more.end());
    b.add_output({.value = test::add_op(b, op, args, {x, by}, name)});
  };
  divide("aten.div.Tensor_mode", "div",
         {{"rounding_mode", std::string("floor")}});
  divide("aten.floor_divide.default", "floor_divide");
  divide("aten.remainder.Tensor", "remainder");
  divide("aten.fmod.Tensor", "fmod");
  const Graph graph = value_of(std::move(b).build());
  CHECK(value_of(verify(planned(graph, "2"), graph, shared_library())).ok);
}

// These operators compute prefix sums and the maximum of all shards from
// exchanged messages.
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

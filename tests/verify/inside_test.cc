// Compares the bytes that the collectives of local programs send with the
// prediction of their strategies. The test runs every call of
// tests/golden/index_spaces.list with every strategy that has collectives
// inside.

#include "ops/call_text.h"
#include "ops/sample_calls.h"
#include "verify/verified.h"

#include <shardprop/strategy/op_cost.h>
#include <shardprop/strategy/op_strategy.h>

#include <fstream>
#include <set>

namespace shardprop {
namespace {

using namespace testing;

// The strategies of a call that have collectives inside.
std::vector<ForcedStrategy> strategies_of(const OpSchema& op,
                                          const DeviceMesh& mesh) {
  auto space = shared_library()->index_space(op);
  if (!space || space->program == nullptr) return {};
  LayoutTable layouts;
  StrategyOptions options;
  options.allow_empty_shards = false;
  const OpStrategy all =
      op_strategies(std::make_shared<const OpSchema>(op),
                    std::make_shared<const IndexSpace>(*std::move(space)), mesh,
                    layouts, options);
  std::vector<ForcedStrategy> out;
  for (const PlacementStrategy& strategy : all.strategies) {
    const LocalContext context{*all.op, *all.space, mesh, layouts, strategy};
    if (collectives_inside(context, dear_compute()).empty()) continue;
    out.push_back(forced_first_node(strategy, layouts));
  }
  return out;
}

struct InsideCounts {
  std::int64_t runs = 0;
  std::int64_t sent = 0;
  std::set<std::string> operators;
};

void check(const OpSchema& op, const char* shape, InsideCounts& counts) {
  const DeviceMesh mesh = value_of(DeviceMesh::parse(shape));
  const std::vector<ForcedStrategy> strategies = strategies_of(op, mesh);
  if (strategies.empty()) return;
  const Graph graph = value_of(graph_of(op));
  // Some operators have no reference to run by.
  const auto expected =
      Expected::create(graph, shared_library(), Optimizer::kNone, {});
  if (!expected) return;
  for (const ForcedStrategy& forced : strategies) {
    PlanOptions options = quick_options();
    options.forced = forced;
    const auto plan =
        make_plan(graph, mesh, dear_compute(), *shared_library(), options);
    // Not all of them are among those of plans.
    if (!plan || !plan->has_plan()) continue;
    const VerifyReport report = value_of(
        verify(value_of(lower(*plan, graph, *shared_library())), *expected));
    std::string takes;
    for (const Layout& layout : forced.takes) takes += to_string(layout) + " ";
    ++counts.runs;
    counts.operators.insert(op.name());
    for (const VerifiedCollective& one : report.collectives) {
      CAPTURE(one.value);
      CAPTURE(to_string(one.kind));
      CAPTURE(takes);
      CHECK(one.counted_bytes == one.planned_bytes);
      counts.sent += one.counted_bytes;
    }
  }
}

TEST_CASE("what local programs send is what their strategies say") {
  InsideCounts counts;
  std::ifstream file("tests/golden/index_spaces.list");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    CAPTURE(line);
    auto op = parse_call(line.substr(0, line.find(" => ")), *shared_library());
    REQUIRE(op.has_value());
    if (op->function->is_mutating()) continue;
    if (!fill_outputs(*op, *shared_library())) continue;
    for (const char* mesh : {"2,2", "3,2"}) check(*op, mesh, counts);
  }
  MESSAGE(counts.runs << " runs of " << counts.operators.size()
                      << " operators, " << counts.sent << " bytes sent");
  CHECK(counts.operators.size() > 10);
  CHECK(counts.runs > 100);
}

// Dims that the meshes cut unevenly, and results of several sizes.
TEST_CASE("uneven parts, and results behind the first, are sent as they are") {
  InsideCounts counts;
  for (
      const char* call :
      {"aten.cumsum.default(f32[5,7], 1)", "aten.cumprod.default(f32[7,5], 0)",
       "aten.topk.default(f32[5,8], 2, 1)", "aten.argmax.default(bf16[5,7], 1)",
       "aten.max.dim(f32[7,5], 0)", "aten._softmax.default(f32[5,7], 1, False)",
       "aten._scaled_dot_product_flash_attention_for_cpu.default(f32[3,4,5,8], "
       "f32[3,2,7,8], f32[3,2,7,8])"}) {
    CAPTURE(call);
    OpSchema op = value_of(parse_call(call, *shared_library()));
    REQUIRE(fill_outputs(op, *shared_library()).has_value());
    const std::int64_t before = counts.runs;
    for (const char* mesh : {"2,2", "3,2", "2,2,2"}) check(op, mesh, counts);
    CHECK(counts.runs > before);
  }
}

}  // namespace
}  // namespace shardprop

// Attention with fewer key heads than ranks: every strategy that shards all
// query heads as one gives the values of the unsharded call.

#include "ops/call_text.h"
#include "ops/sample_calls.h"
#include "verify/verified.h"

#include <shardprop/strategy/op_strategy.h>

#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using namespace testing;

// Returns the strategies that shard a joined factor.
std::vector<ForcedStrategy> joined_strategies(const OpSchema& op,
                                              const DeviceMesh& mesh) {
  LayoutTable layouts;
  StrategyOptions options;
  options.allow_empty_shards = false;
  const OpStrategy all =
      op_strategies(std::make_shared<const OpSchema>(op),
                    std::make_shared<const IndexSpace>(
                        value_of(shared_library()->index_space(op))),
                    mesh, layouts, options);
  std::vector<ForcedStrategy> out;
  for (const PlacementStrategy& strategy : all.strategies) {
    bool joins = false;
    for (const std::int16_t choice : strategy.assignment) {
      joins = joins || (choice != kUnassigned &&
                        std::cmp_less(choice, all.space->factors.size()) &&
                        !all.space->factor(choice).joins.empty());
    }
    if (!joins) continue;
    out.push_back(forced_first_node(strategy, layouts));
  }
  return out;
}

// Runs the call by each of these strategies. Returns their number.
int runs(const char* text, const char* shape) {
  CAPTURE(text);
  CAPTURE(shape);
  OpSchema op = value_of(parse_call(text, *shared_library()));
  REQUIRE(fill_outputs(op, *shared_library()).has_value());
  const DeviceMesh mesh = value_of(DeviceMesh::parse(shape));
  const Graph graph = value_of(graph_of(op));
  const Expected expected =
      value_of(Expected::create(graph, shared_library(), Optimizer::kNone, {}));
  int count = 0;
  for (const ForcedStrategy& forced : joined_strategies(op, mesh)) {
    std::string takes;
    for (const Layout& layout : forced.takes) takes += to_string(layout) + " ";
    CAPTURE(takes);
    PlanOptions options = quick_options();
    options.forced = forced;
    const auto plan =
        make_plan(graph, mesh, dear_compute(), *shared_library(), options);
    CHECK(plan.has_value());
    if (!plan) continue;
    REQUIRE(plan->has_plan());
    const VerifyReport report = value_of(
        verify(value_of(lower(*plan, graph, *shared_library())), expected));
    CHECK(report.ok);
    CHECK(report.findings.empty());
    ++count;
  }
  return count;
}

TEST_CASE("ranks that share a group of query heads select its key head") {
  constexpr const char* kFlash =
      "aten._scaled_dot_product_flash_attention_for_cpu.default(f32[2,8,4,8], "
      "f32[2,2,4,8], f32[2,2,4,8]";
  const std::string plain = std::string(kFlash) + ")";
  const std::string causal = std::string(kFlash) + ", 0.0, True)";
  for (const std::string& call : {plain, causal}) {
    CHECK(runs(call.c_str(), "4") > 0);
    CHECK(runs(call.c_str(), "8") > 0);
    CHECK(runs(call.c_str(), "2,4") > 0);
    CHECK(runs(call.c_str(), "2,8") > 0);
  }
}

TEST_CASE("a rank may have heads of two groups, and ranks different numbers") {
  // Three heads of a group on ranks of two heads, and seven on ranks of four.
  CHECK(runs("aten._scaled_dot_product_flash_attention_for_cpu.default("
             "f32[2,6,4,8], f32[2,2,4,8], f32[2,2,4,8])",
             "3") > 0);
  CHECK(runs("aten._scaled_dot_product_flash_attention_for_cpu.default("
             "f32[1,14,3,8], f32[1,2,3,8], f32[1,2,3,8])",
             "4") > 0);
  CHECK(runs("aten._scaled_dot_product_flash_attention_for_cpu_backward.default"
             "(f32[1,14,3,8], f32[1,14,3,8], f32[1,2,3,8], f32[1,2,3,8], "
             "f32[1,14,3,8], f32[1,14,3], 0.0, True)",
             "4") > 0);
}

TEST_CASE("gradients of a shared key head are partial sums") {
  const std::string operands =
      "(f32[2,8,4,8], f32[2,8,4,8], f32[2,2,4,8], f32[2,2,4,8], ";
  const std::string saved = "f32[2,8,4,8], f32[2,8,4], ";
  for (const char* causal : {"False)", "True)"}) {
    const std::string cpu =
        "aten._scaled_dot_product_flash_attention_for_cpu_backward.default" +
        operands + saved + "0.0, " + causal;
    CHECK(runs(cpu.c_str(), "4") > 0);
    CHECK(runs(cpu.c_str(), "2,4") > 0);
  }
  CHECK(runs(("aten._scaled_dot_product_flash_attention_backward.default" +
              operands + saved + "None, None, 4, 4, 0.0, True, i64[], i64[])")
                 .c_str(),
             "8") > 0);
  CHECK(runs(("aten._scaled_dot_product_cudnn_attention_backward.default" +
              operands +
              "f32[2,8,4,8], f32[2,8,4,1], i64[], i64[], None, None, None, 4, "
              "4, 0.0, True)")
                 .c_str(),
             "8") > 0);
  CHECK(runs(("aten._scaled_dot_product_efficient_attention_backward.default" +
              operands +
              "None, f32[2,8,4,8], f32[2,8,32], i64[], i64[], 0.0, [True, "
              "True, True, False])")
                 .c_str(),
             "8") > 0);
}

TEST_CASE("every overload shards query heads over more ranks than key heads") {
  const std::string operands = "(f32[2,8,4,8], f32[2,2,4,8], f32[2,2,4,8]";
  for (const char* rest : {")", ", 0.0, True)"}) {
    CHECK(runs(("aten._scaled_dot_product_flash_attention.default" + operands +
                rest)
                   .c_str(),
               "8") > 0);
  }
  for (const char* kernel : {"efficient", "cudnn"}) {
    const std::string name = "aten._scaled_dot_product_" + std::string(kernel) +
                             "_attention.default";
    for (const char* rest :
         {", None, True)", ", None, False)", ", f32[2,8,4,4], True)",
          ", None, True, 0.0, True)"}) {
      CHECK(runs((name + operands + rest).c_str(), "8") > 0);
    }
  }
  const std::string composite = "aten.scaled_dot_product_attention.default";
  for (const char* rest :
       {", None, 0.0, False, scale=None, enable_gqa=True)",
        ", None, 0.0, True, scale=None, enable_gqa=True)",
        ", bool[4,4], 0.0, False, scale=None, enable_gqa=True)",
        ", f32[2,8,4,4], 0.0, False, scale=None, enable_gqa=True)"}) {
    CHECK(runs((composite + operands + rest).c_str(), "8") > 0);
    CHECK(runs((composite + operands + rest).c_str(), "2,4") > 0);
  }
}

}  // namespace
}  // namespace shardprop

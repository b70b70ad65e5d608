// The plan of --recompute auto costs no more than that of any rule, on small graphs
// with all combinations of overlap, micro-batches, execution and layers.
#include "plan/layered_graphs.h"
#include "support/dear_topology.h"
#include "support/property.h"
#include "support/result_checks.h"

#include <shardprop/request/plan_request.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>

namespace shardprop {
namespace {

using testing::value_of;

// Returns the plan by the rule; null if the rule makes nothing run again.
std::optional<Plan> by_rule(PlanRequest request, const char* rule) {
  request.options.recompute = value_of(Recompute::parse(rule));
  Result<Plan> made = plan(request);
  if (!made) {
    CHECK(made.error().code == ErrorCode::kInvalidArgument);
    return std::nullopt;
  }
  return *std::move(made);
}

Plan by_auto(PlanRequest request) {
  request.options.recompute.reset();
  return value_of(plan(request));
}

// 2 graphs every day, 60 with SHARDPROP_FULL=1.
TEST_CASE("auto costs no more than any rule on small graphs") {
  std::mt19937 draw(581);
  const int graphs = testing::counted(2, 60);
  int compared = 0;
  int with_second_runs = 0;
  int binding = 0;
  int counted = 0;
  for (int i = 0; counted < graphs && i < 10 * graphs; ++i) {
    CAPTURE(i);
    test::LayeredGraph::Shape shape;
    shape.after = i % 2 == 0 ? test::LayeredGraph::After::kRelu
                             : test::LayeredGraph::After::kAddRelu;
    shape.layers = 3;
    shape.has_head = false;
    PlanRequest request;
    request.library = OpLibrary::standard();
    request.graph =
        std::make_shared<const Graph>(test::LayeredGraph(shape).build());
    if (longest_row_of_blocks(*request.graph) == 0) continue;
    ++counted;
    request.mesh = value_of(planned_mesh("2"));
    request.topology = testing::dear_compute();
    request.options = value_of(plan_options({}, request.topology));
    request.options.gap = 0;
    request.options.time_limit_seconds = 1e6;
    request.options.fusion = i % 4 < 2 ? Fusion::kCompiler : Fusion::kNone;
    request.options.layers = i % 8 < 4 ? Layers::kAlike : Layers::kFree;
    request.options.overlap = draw() % 2 == 0 ? 0 : 1;
    request.options.accumulate = draw() % 2 == 0 ? 1 : 4;
    request.options.optimizer =
        draw() % 2 == 0 ? Optimizer::kSgd : Optimizer::kAdamW;
    request.options.memory_limit.reset();
    // Fewer choices take less work.
    for (const char* pin : {"x=S(0)", "gy=S(0)"}) {
      request.options.pins.push_back(value_of(Pin::parse(pin)));
    }
    const Plan unlimited = *by_rule(request, "none");
    REQUIRE(unlimited.has_plan());
    const auto percent = static_cast<std::int64_t>(70 + draw() % 30);
    request.options.memory_limit = unlimited.memory.peak_bytes / 100 * percent;
    const Plan found = by_auto(request);
    for (const char* rule : {"none", "selective", "full"}) {
      CAPTURE(rule);
      const std::optional<Plan> alone = by_rule(request, rule);
      if (!alone || !alone->has_plan()) continue;
      REQUIRE(found.has_plan());
      CHECK(*found.objective_nanoseconds <= *alone->objective_nanoseconds);
      CHECK(found.lower_bound_nanoseconds <= *alone->objective_nanoseconds);
      ++compared;
    }
    if (!found.has_plan()) continue;
    CHECK(found.memory.peak_bytes <= *request.options.memory_limit);
    binding += *found.objective_nanoseconds > *unlimited.objective_nanoseconds;
    with_second_runs += found.summary.recompute_nanoseconds > 0 ? 1 : 0;
  }
  MESSAGE(compared << " compared; the limit costs time in " << binding << " of "
                   << graphs << ", operators run again in "
                   << with_second_runs);
  CHECK(counted == graphs);
  CHECK(compared > 0);
  if (testing::full_counts()) {
    CHECK(binding > 0);
    CHECK(with_second_runs > 0);
  }
}

}  // namespace
}  // namespace shardprop

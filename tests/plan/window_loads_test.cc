// The loads of overlap windows divide the time of a step among its micro-batches.
#include "plan/problem/window_loads.h"

#include "base/saturating.h"
#include "plan/explain/assemble_plan.h"
#include "plan/invariants.h"
#include "plan/problem/plan_problem.h"
#include "plan/search/solve_plan.h"
#include "plan/slow_links.h"
#include "plan/small_graphs.h"
#include "support/property.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/plan/plan.h>
#include <shardprop/plan/plan_options.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

std::vector<std::int64_t> parts_of(const WindowLoads& loads,
                                   std::int64_t nanoseconds) {
  std::vector<std::int64_t> out;
  loads.divide(0, nanoseconds, [&](std::size_t load, std::int64_t part) {
    CHECK(load == out.size());
    out.push_back(part);
  });
  return out;
}

TEST_CASE(
    "a window has a load for the first, the middle, the last of its runs") {
  using Parts = std::vector<std::int64_t>;
  CHECK(parts_of({2, 8}, 1000) == Parts{125, 750, 125});
  CHECK(parts_of({2, 2}, 1001) == Parts{500, 501});
  CHECK(parts_of({2, 1}, 1001) == Parts{1001});
  CHECK(parts_of({2, 3}, -5) == Parts{-1, -3, -1});
  const WindowLoads loads(4, 8);
  CHECK(loads.size() == 12);
  CHECK(loads.first(1) == 3);
  CHECK(loads.last(1) == 5);
  CHECK(loads.window_of(4) == 1);
}

TEST_CASE("the parts of a time add up, and so do those of whole shares") {
  std::mt19937 draw(571);
  for (int i = 0; i < testing::counted(1'000, 10'000); ++i) {
    const auto count = static_cast<std::int64_t>(1 + draw() % 20);
    CAPTURE(count);
    const WindowLoads loads(1, count);
    const auto time = static_cast<std::int64_t>(draw());
    const auto a = static_cast<std::int64_t>(draw()) * count;
    const auto b = static_cast<std::int64_t>(draw()) * count;
    std::int64_t sum = 0;
    for (const std::int64_t part : parts_of(loads, time)) sum += part;
    CHECK(sum == time);
    std::vector<std::int64_t> both = parts_of(loads, a);
    for (std::size_t l = 0; l < both.size(); ++l) {
      both[l] += parts_of(loads, b)[l];
    }
    CHECK(both == parts_of(loads, a + b));
  }
}

// A gradient that is reduced once a step overlaps with one backward phase, not
// with all of them.
TEST_CASE("a reduction once a step overlaps in the last micro-batch alone") {
  const Graph graph = test::residual_training(testing::standard_library(), 3,
                                              "512", "1024", "4096");
  for (const int accumulate : {1, 2, 8}) {
    CAPTURE(accumulate);
    std::int64_t last_exposed = 0;
    PlanOptions options;
    options.overlap = 1;
    options.optimizer = Optimizer::kAdamW;
    options.accumulate = accumulate;
    options.recipe = value_of(Recipe::parse("ddp=dp"));
    options.work_limit = 200'000'000;
    const PlanProblem problem = value_of(PlanProblem::create(
        graph, value_of(DeviceMesh::parse("dp=8")), test::slow_links(8),
        testing::standard_library(), options));
    const PlanSolution solution = solve_plan(problem);
    REQUIRE(solution.assignment);
    const Plan plan = assemble_plan(problem, solution);
    test::check_plan(plan);
    const WindowLoads loads = problem.window_loads();
    REQUIRE(plan.windows.size() == loads.size());
    for (std::size_t load = 0; load < loads.size(); ++load) {
      const PlannedWindow& window = plan.windows[load];
      const std::size_t of = loads.window_of(load);
      CHECK(window.begins_at == problem.windows().first_slot(of));
      CHECK((window.micro_batches == MicroBatches::kAll) == (accumulate == 1));
      if (accumulate == 1 || load == loads.last(of)) {
        CHECK((accumulate == 1 || window.micro_batches == MicroBatches::kLast));
        last_exposed += solution.evaluation.windows[load].exposed();
      } else {
        CHECK(window.micro_batches == (load == loads.first(of)
                                           ? MicroBatches::kFirst
                                           : MicroBatches::kBetween));
        CHECK(window.overlappable_nanoseconds == 0);
      }
    }
    // The reductions take longer than the compute of one micro-batch.
    CHECK(last_exposed > 0);
  }
}

// With many micro-batches a window has one load, and whole nanoseconds of a
// transfer overlap. So more micro-batches make no plan more expensive.
TEST_CASE("the objective does not rise with many micro-batches") {
  const Graph graph = test::residual_training(testing::standard_library(), 2,
                                              "512", "256", "512");
  std::int64_t before = kMostInt;
  for (const int accumulate : {256, 257, 1'000, 100'000}) {
    CAPTURE(accumulate);
    PlanOptions options;
    options.overlap = 1;
    options.optimizer = Optimizer::kAdamW;
    options.accumulate = accumulate;
    options.recipe = value_of(Recipe::parse("fsdp=dp"));
    options.work_limit = 200'000'000;
    const PlanProblem problem = value_of(PlanProblem::create(
        graph, value_of(DeviceMesh::parse("dp=8")), test::slow_links(1),
        testing::standard_library(), options));
    const bool is_divided = accumulate <= kMostDividedMicroBatches;
    CHECK(problem.window_loads().of_window() == (is_divided ? 3 : 1));
    const PlanSolution solution = solve_plan(problem);
    REQUIRE(solution.assignment);
    CHECK(solution.evaluation.objective <= before);
    before = solution.evaluation.objective;
    const Plan plan = assemble_plan(problem, solution);
    test::check_plan(plan);
    CHECK(plan.summary.overlapped_nanoseconds > 0);
    for (const PlannedWindow& window : plan.windows) {
      CHECK((window.micro_batches == MicroBatches::kAll) == !is_divided);
    }
  }
}

}  // namespace
}  // namespace shardprop

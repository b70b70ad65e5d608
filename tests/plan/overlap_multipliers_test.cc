// OverlapMultipliers: bounds stay below the optimum and rise.
#include "plan/search/overlap_multipliers.h"

#include "plan/network/plan_network.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace shardprop {
namespace {

using Multipliers = std::vector<std::int64_t>;

// A plan of a few windows, and its cost without exposed time.
struct MadeUpPlan {
  std::int64_t base = 0;
  std::vector<WindowLoad> windows;

  PlanEvaluation evaluation() const {
    PlanEvaluation out;
    out.windows = windows;
    out.objective = base;
    for (const WindowLoad& load : windows) out.objective += load.exposed();
    return out;
  }
  // The cost at these multipliers, which is at most the true cost.
  std::int64_t priced(const Multipliers& at) const {
    std::int64_t sum = base;
    for (std::size_t w = 0; w < windows.size(); ++w) {
      sum += at[w] * (windows[w].overlappable - windows[w].compute) /
             kOverlapMultiplierUnit;
    }
    return sum;
  }
};

const MadeUpPlan& cheapest(const std::vector<MadeUpPlan>& plans,
                           const Multipliers& at) {
  return *std::min_element(plans.begin(), plans.end(),
                           [&](const MadeUpPlan& a, const MadeUpPlan& b) {
                             return a.priced(at) < b.priced(at);
                           });
}

// Plans with little overlappable time cost more without exposed time.
std::vector<MadeUpPlan> made_up_plans(std::mt19937& random,
                                      std::size_t windows) {
  std::vector<MadeUpPlan> out(3 + random() % 8);
  for (MadeUpPlan& plan : out) {
    plan.base = 4'000'000;
    for (std::size_t w = 0; w < windows; ++w) {
      const auto compute = static_cast<std::int64_t>(random() % 500'000);
      const auto overlappable = static_cast<std::int64_t>(random() % 1'000'000);
      plan.windows.push_back(
          {.overlappable = overlappable, .compute = compute});
      plan.base += (1'000'000 - overlappable) * 3 / 4;
    }
  }
  return out;
}

TEST_CASE("learned multipliers raise a bound that stays below the optimum") {
  std::mt19937 random(12);
  int above_first = 0;
  for (int n = 0; n < 120; ++n) {
    const std::size_t windows = 1 + static_cast<std::size_t>(n) % 2;
    const auto plans = made_up_plans(random, windows);
    std::int64_t optimum = std::numeric_limits<std::int64_t>::max();
    for (const MadeUpPlan& plan : plans) {
      optimum = std::min(optimum, plan.evaluation().objective);
    }
    OverlapMultipliers multipliers(windows);
    CHECK(multipliers.prices() == Multipliers(windows, 0));
    std::int64_t best = 0;
    std::int64_t first = 0;
    int steps = 0;
    bool more = true;
    while (more) {
      REQUIRE(++steps < 1'000);
      const Multipliers at = multipliers.prices();
      for (const std::int64_t multiplier : at) {
        CHECK(multiplier >= 0);
        CHECK(multiplier <= kOverlapMultiplierUnit);
      }
      const MadeUpPlan& plan = cheapest(plans, at);
      const std::int64_t bound = plan.priced(at);
      if (steps == 1) first = bound;
      best = std::max(best, bound);
      more = multipliers.learn(plan.evaluation(), bound);
    }
    CAPTURE(n);
    // Rounded shares of a window are less than 1 ns.
    CHECK(best <= optimum + static_cast<std::int64_t>(windows));
    above_first += best > first ? 1 : 0;
    multipliers.go_back();
    CHECK(cheapest(plans, multipliers.prices()).priced(multipliers.prices()) ==
          best);
  }
  CHECK(above_first > 30);
}

TEST_CASE("extreme multipliers are full in windows with exposed time only") {
  CHECK(OverlapMultipliers::extreme({{.overlappable = 5, .compute = 4},
                                     {.overlappable = 4, .compute = 4},
                                     {.overlappable = 0, .compute = 9}}) ==
        Multipliers{kOverlapMultiplierUnit, 0, 0});
}

}  // namespace
}  // namespace shardprop

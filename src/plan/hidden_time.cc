#include "plan/hidden_time.h"

#include "plan/ties.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <string>
#include <string_view>
#include <utility>

namespace shardprop {
namespace {

// Prices that are tried, when they are good enough, and the share of the time
// left that one of them may take.
constexpr int kMostPrices = 16;
constexpr int kMostPricingRounds = 4;
// What is left of the time for plans between those met.
constexpr double kShareOfPlans = 0.4;
constexpr double kSmallGap = 1e-5;
constexpr double kPricingShareOfTime = 0.25;
constexpr double kEnoughPricingGap = 2e-4;
constexpr double kEnoughWhereLong = 2e-3;
// What is spent on what no prices can tell apart.
constexpr int kMostBranches = 1000;
constexpr std::uint64_t kBranchWork = 500'000'000;

}  // namespace

std::vector<std::int64_t> HiddenTime::by_slot(
    const std::vector<std::int64_t>& by_window) const {
  const PlanProblem& problem = search_.problem();
  std::vector<std::int64_t> out;
  const auto slots = static_cast<std::int64_t>(problem.graph().nodes().size());
  for (std::int64_t slot = 0; slot <= slots; ++slot) {
    out.push_back(by_window[problem.window_of(slot)]);
  }
  return out;
}

bool HiddenTime::is_close() const {
  const PlanSolution& best = search_.best();
  return static_cast<double>(best.evaluation.objective - best.lower_bound) <=
         kSmallGap * static_cast<double>(best.evaluation.objective);
}

std::vector<std::int64_t> HiddenTime::run() {
  if (search_.tried().evaluation.exposed() == 0 &&
      search_.best().evaluation.exposed() == 0) {
    return {};
  }
  network_.hidden_prices =
      by_slot(std::vector<std::int64_t>(search_.problem().num_windows(), 0));
  note();
  price();
  if (settles_ && !search_.is_done()) branch();
  return network_.hidden_prices;
}

// What takes long once takes too long a hundred times.
bool HiddenTime::takes_long() const {
  return search_.first_work() > kBranchWork / 10;
}

// Raises the bound and finds plans between those met, as exactly as there is
// time for. Leaves the best prices with the network.
void HiddenTime::price() {
  HiddenPrices prices(search_.problem().num_windows());
  double enough_gap = takes_long() ? kEnoughWhereLong : kEnoughPricingGap;
  for (int round = 0; round < kMostPricingRounds; ++round) {
    const std::int64_t objective = search_.best().evaluation.objective;
    const std::int64_t bound = search_.best().lower_bound;
    raise_bound(prices, enough_gap);
    blend_.run(network_);
    if (!settles_ || is_close()) return;
    blend_.polish(network_);
    if (is_close()) return;
    enough_gap = kEnoughPricingGap;
    if (!search_.solve(network_, {.enough_gap = enough_gap})) return;
    note();
    prices.go_back();
    if (search_.best().evaluation.objective == objective &&
        search_.best().lower_bound == bound) {
      return;
    }
  }
}

void HiddenTime::raise_bound(HiddenPrices& prices, double enough_gap) {
  std::vector<std::int64_t> best = network_.hidden_prices;
  std::int64_t bound = search_.best().lower_bound;
  const double for_plans = kShareOfPlans * search_.seconds_left();
  for (int i = 0; i < kMostPrices && !is_close(); ++i) {
    if (search_.seconds_left() < for_plans) break;
    const Tried& met = search_.tried();
    if (!prices.learn(met.evaluation, met.bound)) break;
    network_.hidden_prices = by_slot(prices.prices());
    if (!search_.solve(network_, {.share_of_time = kPricingShareOfTime,
                                  .enough_gap = enough_gap,
                                  .enough_cost = search_.best().lower_bound})) {
      break;
    }
    note();
    if (search_.best().lower_bound > bound) {
      bound = search_.best().lower_bound;
      best = network_.hidden_prices;
    }
  }
  network_.hidden_prices = std::move(best);
}

// Keeps what the search met.
void HiddenTime::note() {
  blend_.add(search_.tried());
  const std::int64_t objective = search_.tried().evaluation.objective;
  if (alike_ && *alike_ <= objective) return;
  if (lies_alike(search_.problem(), search_.last())) alike_ = objective;
}

namespace {

// What is left to choose from on one side, and what it costs at least.
struct Branch {
  std::map<std::uint32_t, std::vector<std::uint32_t>> left;
  std::int64_t bound = 0;
  friend bool operator>(const Branch& a, const Branch& b) {
    return a.bound > b.bound;
  }
};
using OpenBranches =
    std::priority_queue<Branch, std::vector<Branch>, std::greater<>>;

// With one of the choices of a variable, and without.
void split_branch(Branch with, std::uint32_t variable, std::uint32_t choice,
                  std::uint32_t num_choices, OpenBranches& open) {
  Branch without = with;
  std::vector<std::uint32_t>& rest = without.left[variable];
  if (rest.empty()) {
    rest.resize(num_choices);
    std::iota(rest.begin(), rest.end(), 0U);
  }
  std::erase(rest, choice);
  const bool is_empty = rest.empty();
  with.left[variable] = {choice};
  open.push(std::move(with));
  if (!is_empty) open.push(std::move(without));
}

}  // namespace

// Where the cheapest assignments at two prices differ in a choice, it is taken
// on one side and forbidden on the other: in the end the loads of all windows
// are fixed, and prices of 0 and 1 are exact.
void HiddenTime::branch() {
  if (takes_long()) return;
  const PlanSolution& best = search_.best();
  const std::uint64_t before = best.work;
  OpenBranches open;
  open.push({{}, best.lower_bound});
  for (int i = 0; i < kMostBranches && !open.empty(); ++i) {
    // The plan may have become cheaper than what a branch was open for.
    search_.raise_bound(
        std::min(open.top().bound, best.evaluation.objective));
    if (search_.is_done() || best.work - before > kBranchWork) return;
    Branch here = open.top();
    open.pop();
    NetworkOptions options = network_;
    options.left = here.left;
    if (!search_.solve(options, {.bounds = false})) {
      if (search_.stopped()) return;
      continue;  // there is nothing left here
    }
    here.bound = std::max(here.bound, search_.tried().bound);
    const solver::Assignment mine = search_.tried().assignment;
    options.hidden_prices =
        by_slot(HiddenPrices::extreme(search_.tried().evaluation.windows));
    if (here.bound < best.evaluation.objective) {
      if (!search_.solve(options, {.bounds = false})) return;
      here.bound = std::max(here.bound, search_.tried().bound);
    }
    if (here.bound >= best.evaluation.objective) continue;
    const Tried& other = search_.tried();
    const auto differ =
        std::mismatch(mine.begin(), mine.end(), other.assignment.begin()).first;
    if (differ == mine.end()) return;
    const auto variable = static_cast<std::uint32_t>(differ - mine.begin());
    split_branch(std::move(here), variable, *differ,
                 other.num_choices[variable], open);
  }
  if (open.empty()) search_.raise_bound(best.evaluation.objective);
}

}  // namespace shardprop

#include "plan/search/overlap_multipliers.h"

#include "plan/network/plan_network.h"
#include "plan/tuning.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <utility>

namespace shardprop {

OverlapMultipliers::OverlapMultipliers(const std::vector<std::int64_t>& first,
                                       std::vector<std::size_t> classes)
    : classes_(std::move(classes)),
      all_uniform_(std::all_of(first.begin(), first.end(),
                               [](std::int64_t one) { return one == 0; })) {
  if (classes_.empty()) {
    classes_.resize(first.size());
    std::iota(classes_.begin(), classes_.end(), std::size_t{0});
  }
  for (std::size_t w = 0; w < first.size(); ++w) {
    prices_.resize(std::max(prices_.size(), classes_[w] + 1), 0);
    prices_[classes_[w]] = first[w];
  }
  best_ = prices_;
  exposed_.resize(prices_.size(), false);
}

std::vector<std::int64_t> OverlapMultipliers::prices() const {
  std::vector<std::int64_t> out;
  out.reserve(classes_.size());
  for (const std::size_t c : classes_) out.push_back(prices_[c]);
  return out;
}

double OverlapMultipliers::promise(const std::vector<double>& prices,
                                   std::size_t& at) const {
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t c = 0; c < cuts_.size(); ++c) {
    double value = cuts_[c].base;
    for (std::size_t w = 0; w < prices.size(); ++w) {
      value += prices[w] * cuts_[c].excess[w];
    }
    if (value >= least) continue;
    least = value;
    at = c;
  }
  return least;
}

// Maximises the minimum of the cutting planes, which is concave and piecewise
// linear in a few multipliers. The steps follow the binding plane and get
// shorter.
std::vector<double> OverlapMultipliers::most_promising() const {
  std::vector<double> at(best_.size());
  for (std::size_t w = 0; w < at.size(); ++w) {
    at[w] = static_cast<double>(best_[w]) / kOverlapMultiplierUnit;
  }
  std::vector<double> found = at;
  std::vector<double> low;
  std::vector<double> high;
  const double reach = static_cast<double>(reach_) / kOverlapMultiplierUnit;
  for (const double price : at) {
    low.push_back(std::max(0.0, price - reach));
    high.push_back(std::min(1.0, price + reach));
  }
  double most = -std::numeric_limits<double>::infinity();
  for (int step = 1; step <= tuning::kAscentSteps; ++step) {
    std::size_t cut = 0;
    const double value = promise(at, cut);
    if (value > most) {
      most = value;
      found = at;
    }
    double length = 0;
    for (const double e : cuts_[cut].excess) length += e * e;
    if (length == 0) break;
    const double stride = tuning::kFirstAscentStride /
                          std::sqrt(static_cast<double>(step) * length);
    for (std::size_t w = 0; w < at.size(); ++w) {
      at[w] =
          std::clamp(at[w] + stride * cuts_[cut].excess[w], low[w], high[w]);
    }
  }
  return found;
}

bool OverlapMultipliers::learn(const PlanEvaluation& plan, std::int64_t bound) {
  Cut cut{static_cast<double>(plan.objective - plan.exposed()),
          std::vector<double>(prices_.size(), 0)};
  for (std::size_t w = 0; w < plan.windows.size(); ++w) {
    const WindowLoad& load = plan.windows[w];
    const std::size_t c = classes_[w];
    cut.excess[c] += static_cast<double>(load.overlappable) -
                     static_cast<double>(load.compute);
    if (load.exposed() == 0 || exposed_[c]) continue;
    exposed_[c] = true;
    // The classes no longer have a multiplier in common.
    if (!cuts_.empty()) all_uniform_ = false;
  }
  cuts_.push_back(std::move(cut));
  const bool better = bound > bound_;
  if (better) {
    bound_ = bound;
    best_ = prices_;
  }
  if (all_uniform_ && move_all()) return true;
  if (prices_.size() == 1) return false;
  all_uniform_ = false;
  if (reach_ == 0) {
    reach_ = tuning::kFirstMultiplierReach;
  } else if (!better) {
    reach_ /= 2;
  }
  return move_each();
}

// Moves the common multiplier of all exposed classes to the point that
// maximises the minimum of the cutting planes.
bool OverlapMultipliers::move_all() {
  std::vector<double> totals;
  for (const Cut& cut : cuts_) {
    totals.push_back(0);
    for (std::size_t w = 0; w < exposed_.size(); ++w) {
      if (exposed_[w]) totals.back() += cut.excess[w];
    }
  }
  const auto least_at = [&](double price) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t c = 0; c < cuts_.size(); ++c) {
      least = std::min(least, cuts_[c].base + price * totals[c]);
    }
    return least;
  };
  const double most =
      static_cast<double>(
          std::min(kOverlapMultiplierUnit,
                   std::max(tuning::kFirstCommonMultiplier,
                            tuning::kCommonMultiplierFactor * highest_))) /
      kOverlapMultiplierUnit;
  double next = least_at(most) > least_at(0) ? most : 0;
  for (std::size_t up = 0; up < cuts_.size(); ++up) {
    for (std::size_t down = 0; down < cuts_.size(); ++down) {
      if (totals[up] <= 0 || totals[down] >= 0) continue;
      const double meet =
          (cuts_[down].base - cuts_[up].base) / (totals[up] - totals[down]);
      if (meet >= 0 && meet <= most && least_at(meet) > least_at(next)) {
        next = meet;
      }
    }
  }
  const auto price =
      static_cast<std::int64_t>(std::llround(next * kOverlapMultiplierUnit));
  const auto is_near = [&](const std::vector<std::int64_t>& prices) {
    return std::abs(price - *std::max_element(prices.begin(), prices.end())) <
           tuning::kSameMultiplierDistance;
  };
  if (is_near(prices_) || is_near(best_)) return false;
  highest_ = std::max(highest_, price);
  for (std::size_t w = 0; w < prices_.size(); ++w) {
    prices_[w] = exposed_[w] ? price : 0;
  }
  return true;
}

// Plans that were not found yet may lower the maximum of the cutting planes. So
// the next multipliers are on the way from the best ones to that maximum, at
// the point where the planes reach kLevelShare of the promised gain (a level
// method).
std::vector<double> OverlapMultipliers::on_the_way(
    const std::vector<double>& there) const {
  std::vector<double> here(best_.size());
  for (std::size_t w = 0; w < here.size(); ++w) {
    here[w] = static_cast<double>(best_[w]) / kOverlapMultiplierUnit;
  }
  const auto between = [&](double share) {
    std::vector<double> out;
    for (std::size_t w = 0; w < here.size(); ++w) {
      out.push_back(here[w] + share * (there[w] - here[w]));
    }
    return out;
  };
  std::size_t cut = 0;
  const double least = static_cast<double>(bound_);
  const double most = promise(there, cut);
  const double enough = least + tuning::kLevelShare * (most - least);
  if (most - least < tuning::kNegligiblePromiseGap * least ||
      promise(here, cut) >= enough) {
    return there;
  }
  double low = 0;
  double high = 1;
  for (int i = 0; i < tuning::kLevelHalvings; ++i) {
    const double middle = (low + high) / 2;
    (promise(between(middle), cut) < enough ? low : high) = middle;
  }
  return between(high);
}

bool OverlapMultipliers::move_each() {
  const std::vector<double> next = on_the_way(most_promising());
  bool moved = false;
  for (std::size_t w = 0; w < prices_.size(); ++w) {
    const auto price = static_cast<std::int64_t>(
        std::llround(next[w] * kOverlapMultiplierUnit));
    moved = moved || price != prices_[w];
    prices_[w] = price;
  }
  return moved && prices_ != best_ && reach_ >= tuning::kLeastMultiplierReach;
}

std::vector<std::int64_t> OverlapMultipliers::extreme(
    const std::vector<WindowLoad>& loads) {
  std::vector<std::int64_t> out;
  out.reserve(loads.size());
  for (const WindowLoad& load : loads) {
    out.push_back(load.exposed() > 0 ? kOverlapMultiplierUnit : 0);
  }
  return out;
}

}  // namespace shardprop

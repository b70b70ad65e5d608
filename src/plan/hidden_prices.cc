#include "plan/hidden_prices.h"

#include "plan/plan_network.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shardprop {
namespace {

constexpr int kSteps = 4000;
// How far the next prices go from the best at first, and least.
constexpr std::int64_t kFirstReach = kHiddenPriceUnit / 5;
constexpr std::int64_t kLeastReach = 8;

}  // namespace

double HiddenPrices::promise(const std::vector<double>& prices,
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

// Concave and piecewise linear in a few prices: steps along the cut that
// binds, ever shorter.
std::vector<double> HiddenPrices::most_promising() const {
  std::vector<double> at(best_.size());
  for (std::size_t w = 0; w < at.size(); ++w) {
    at[w] = static_cast<double>(best_[w]) / kHiddenPriceUnit;
  }
  std::vector<double> found = at;
  double most = -std::numeric_limits<double>::infinity();
  for (int step = 1; step <= kSteps; ++step) {
    std::size_t cut = 0;
    const double value = promise(at, cut);
    if (value > most) {
      most = value;
      found = at;
    }
    double length = 0;
    for (const double e : cuts_[cut].excess) length += e * e;
    if (length == 0) break;
    const double stride = 0.5 / std::sqrt(static_cast<double>(step) * length);
    for (std::size_t w = 0; w < at.size(); ++w) {
      at[w] = std::clamp(at[w] + stride * cuts_[cut].excess[w], 0.0, 1.0);
    }
  }
  return found;
}

bool HiddenPrices::learn(const PlanEvaluation& plan, std::int64_t bound) {
  Cut cut{static_cast<double>(plan.objective), {}};
  for (const WindowLoad& load : plan.windows) {
    cut.base -= static_cast<double>(load.exposed());
    cut.excess.push_back(static_cast<double>(load.hideable) -
                         static_cast<double>(load.compute));
  }
  cuts_.push_back(std::move(cut));
  if (reach_ == 0) {
    reach_ = kFirstReach;
  } else if (bound <= bound_) {
    reach_ /= 2;
  }
  if (bound > bound_) {
    bound_ = bound;
    best_ = prices_;
  }
  const std::vector<double> next = most_promising();
  bool moved = false;
  for (std::size_t w = 0; w < prices_.size(); ++w) {
    const auto there =
        static_cast<std::int64_t>(std::llround(next[w] * kHiddenPriceUnit));
    const std::int64_t price =
        std::clamp(there, best_[w] - reach_, best_[w] + reach_);
    moved = moved || price != prices_[w];
    prices_[w] = price;
  }
  return moved && prices_ != best_ && reach_ >= kLeastReach;
}

std::vector<std::int64_t> HiddenPrices::extreme(
    const std::vector<WindowLoad>& loads) {
  std::vector<std::int64_t> out;
  out.reserve(loads.size());
  for (const WindowLoad& load : loads) {
    out.push_back(load.exposed() > 0 ? kHiddenPriceUnit : 0);
  }
  return out;
}

}  // namespace shardprop

// HiddenPrices: what time that may hide is worth, window by window.
//
// In a window, hidden time is no more than compute: a plan pays
// max(0, hideable - compute), which is the largest of price * (hideable -
// compute) over prices from 0 to 1. With any prices, then, the cheapest plan of
// the priced problem bounds the cheapest of the true one from below.
//
// What a plan costs is linear in the prices, so that every plan met bounds what
// any prices can give: the next ones are those of which the plans met so far
// promise most (Kelley's cutting planes), or lie on the way there, where much
// more is promised than the bound has reached. At first one price stands for
// all windows in which the first plan had to wait, and the others are free;
// then, or as soon as a plan has to wait in another, each moves by itself, near
// the best ones so far.
#pragma once

#include "plan/plan_assignment.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardprop {

class HiddenPrices {
 public:
  // All 0. In parts of kHiddenPriceUnit.
  explicit HiddenPrices(std::size_t windows)
      : prices_(windows, 0), best_(windows, 0), exposed_(windows, false) {}

  const std::vector<std::int64_t>& prices() const { return prices_; }

  // Takes the cheapest plan at these prices, and the bound that they gave, and
  // moves to others; false when there are none that promise more.
  bool learn(const PlanEvaluation& plan, std::int64_t bound);
  // To the best prices, from which they may go far again.
  void go_back() {
    prices_ = best_;
    reach_ = 0;
    all_alike_ = false;
  }

  // Where more would hide than there is compute, all of it; elsewhere nothing.
  static std::vector<std::int64_t> extreme(
      const std::vector<WindowLoad>& loads);

 private:
  // What a plan costs: base + the sum of prices * excess.
  struct Cut {
    double base = 0;
    std::vector<double> excess;
  };
  bool move_all();
  bool move_each();
  // The least of the cuts; `at` is the cut.
  double promise(const std::vector<double>& prices, std::size_t& at) const;
  std::vector<double> most_promising() const;
  std::vector<double> on_the_way(const std::vector<double>& there) const;

  std::vector<Cut> cuts_;
  std::vector<std::int64_t> prices_;
  std::vector<std::int64_t> best_;
  std::int64_t bound_ = 0;
  std::vector<bool> exposed_;  // in some plan, by window
  bool all_alike_ = true;
  std::int64_t highest_ = 0;  // that was tried for all windows
  std::int64_t reach_ = 0;    // how far to go from the best prices
};

}  // namespace shardprop

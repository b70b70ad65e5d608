// HiddenPrices: what time that may hide is worth, window by window.
//
// In a window, hidden time is no more than compute: a plan pays
// max(0, hideable - compute), which is the largest of price * (hideable -
// compute) over prices from 0 to 1. With any prices, then, the cheapest plan of
// the priced problem bounds the cheapest of the true one from below; the best
// prices are found between one at which too much would hide and one at which
// too little does.
#pragma once

#include <shardprop/plan/plan_assignment.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardprop {

class HiddenPrices {
 public:
  // All 0. In parts of kHiddenPriceUnit.
  explicit HiddenPrices(std::size_t windows) : windows_(windows) {}

  std::vector<std::int64_t> prices() const;

  // Takes the loads of the cheapest assignment at these prices and moves to
  // others; false when there are no better ones.
  bool learn(const std::vector<WindowLoad>& loads);

  // Where more would hide than there is compute, all of it; elsewhere nothing.
  static std::vector<std::int64_t> extreme(
      const std::vector<WindowLoad>& loads);

 private:
  struct Window {
    std::int64_t price = 0;
    // More than the compute would hide at `low`, no more at `high`; by how
    // much, once known.
    std::int64_t low = -1;
    double above = 0;
    std::int64_t high = -1;
    double below = 0;
  };
  static std::int64_t next_price(const Window& window);

  std::vector<Window> windows_;
};

}  // namespace shardprop

#include "plan/hidden_prices.h"

#include "plan/plan_network.h"

#include <algorithm>

namespace shardprop {

std::vector<std::int64_t> HiddenPrices::prices() const {
  std::vector<std::int64_t> out;
  out.reserve(windows_.size());
  for (const Window& window : windows_) out.push_back(window.price);
  return out;
}

bool HiddenPrices::learn(const std::vector<WindowLoad>& loads) {
  bool moved = false;
  for (std::size_t w = 0; w < windows_.size(); ++w) {
    Window& window = windows_[w];
    const double excess = static_cast<double>(loads[w].hideable) -
                          static_cast<double>(loads[w].compute);
    if (excess > 0) {
      window.low = window.price;
      window.above = excess;
    } else {
      window.high = window.price;
      window.below = -excess;
    }
    const std::int64_t next = next_price(window);
    moved = moved || next != window.price;
    window.price = next;
  }
  return moved;
}

std::int64_t HiddenPrices::next_price(const Window& window) {
  if (window.low < 0) return window.high;  // too little at 0 already
  if (window.high < 0) return kHiddenPriceUnit;
  const std::int64_t width = window.high - window.low;
  if (width <= 1) return window.high;
  // Where the lines through both ends meet; never close to either.
  const double at = window.above / std::max(window.above + window.below, 1.0);
  const auto step = static_cast<std::int64_t>(
      std::clamp(at, 0.1, 0.9) * static_cast<double>(width));
  return window.low + std::clamp<std::int64_t>(step, 1, width - 1);
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

// HiddenTime: the search where more could hide in a window than there is
// compute (windows.h), which ties all operators of a phase to all its
// transfers.
//
// It goes on from a plan that was found with such time free, in three ways:
// prices for it raise the bound and lead to plans with more to hide than there
// is compute, and with less (hidden_prices.h); plans between those follow them
// layer by layer (layer_blend.h); and where the problem is small, branching
// settles what is left.
#pragma once

#include "plan/hidden_prices.h"
#include "plan/layer_blend.h"
#include "plan/network_search.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace shardprop {

class HiddenTime {
 public:
  // `network`: in which the best plan was found. Precondition: there is one.
  // `settles`: whether the last bit of the gap is worth the time.
  HiddenTime(NetworkSearch& search, NetworkOptions network, bool settles)
      : search_(search),
        network_(std::move(network)),
        settles_(settles),
        blend_(search) {}

  // The prices that gave the best bound, by slot; none where all could hide.
  std::vector<std::int64_t> run();

  // What the cheapest plan costs that was met and lays out equal layers alike.
  std::optional<std::int64_t> alike() const { return alike_; }

 private:
  void price();
  void raise_bound(HiddenPrices& prices, double enough_gap);
  void note();
  void note_alike();
  void branch();
  std::vector<std::int64_t> by_slot(
      const std::vector<std::int64_t>& by_window) const;
  bool is_close() const;
  bool takes_long() const;

  NetworkSearch& search_;
  NetworkOptions network_;
  bool settles_;
  LayerBlend blend_;
  std::optional<std::int64_t> alike_;
};

}  // namespace shardprop

// HiddenTime: the search where more could hide in a window than there is
// compute (windows.h), which ties all operators of a phase to all its
// transfers.
//
// It goes on from a plan that was found with such time free, in three ways:
// prices for it raise the bound and lead to plans with more to hide than there
// is compute, and with less (hidden_prices.h); a plan between two of those
// follows one in some layers and the other in the rest; and where the problem is
// small, branching settles what is left.
#pragma once

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
  HiddenTime(NetworkSearch& search, NetworkOptions network)
      : search_(search), network_(std::move(network)) {}

  // The prices that gave the best bound, by slot; none where all could hide.
  std::vector<std::int64_t> run();

  // A plan that was met, and the bound that its prices gave.
  struct Side {
    PlanAssignment plan;
    std::int64_t objective = 0;
    solver::Assignment assignment;
    std::int64_t bound = 0;
  };
  // The plans between which a better one was looked for, if any.
  std::vector<Side> sides() const;

 private:
  void price();
  void note_side();
  void blend();
  bool blend_at(const std::vector<std::size_t>& layers, std::size_t seam,
                bool first_exposed);
  void branch();
  std::vector<std::int64_t> by_slot(
      const std::vector<std::int64_t>& by_window) const;
  bool is_close() const;
  bool takes_long() const;

  NetworkSearch& search_;
  NetworkOptions network_;
  // Of the plans with more to hide than there is compute, and with less, those
  // whose prices gave the best bounds.
  std::optional<Side> exposed_;
  std::optional<Side> hidden_;
  std::vector<std::int64_t> slots_;  // by variable of the network
  bool blended_ = false;
};

}  // namespace shardprop

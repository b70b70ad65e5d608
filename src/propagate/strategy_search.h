// The least-cost strategy of one call on tensors that are laid out, found by
// bound.
//
// First what leaves every input where it is: if there is such a strategy
// without collectives inside, nothing is cheaper. Otherwise assignments are
// walked mesh dim by mesh dim under a rising limit on what the moves that they
// ask for take at least (MoveBound); what is left is priced in the order of its
// bound, until no bound lies below the best price.
#pragma once

#include "propagate/bound_op.h"
#include "propagate/strategy_price.h"

#include <shardprop/strategy/op_strategy.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace shardprop {

// Mesh dims of one rank lay nothing out: any placement there is as good as R.
Layout without_single_ranks(const Layout& layout, const DeviceMesh& mesh);

struct ChosenStrategy {
  Assignment assignment;
  std::vector<Layout> operands;  // inputs first
  std::vector<CollectiveStep> inside;
  // Of each input; null of those that stay. Empty where all of them do.
  std::vector<std::shared_ptr<const RedistributePlan>> plans;
  std::int64_t moved_nanoseconds = 0;
  std::int64_t inside_nanoseconds = 0;
  std::int64_t compute_nanoseconds = -1;  // -1: not asked for
  int moved_inputs = 0;
  // No other strategy leaves all inputs where they are, and this one has no
  // collectives: it is the one whatever the sizes are.
  bool is_only_fit = false;
};

// Why nothing was found.
struct NoChoice {
  bool written_moves = false;  // but for operands that are written
  Error refused;               // by the planner
};

// `given`: canonical layouts, without_single_ranks().
tl::expected<ChosenStrategy, NoChoice> choose_strategy(
    const SearchContext& context, const BoundOp& call,
    std::span<const Layout> given);

}  // namespace shardprop

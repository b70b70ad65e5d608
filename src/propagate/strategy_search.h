// Finds the least-cost strategy of one call for given input layouts, by branch
// and bound.
//
// The search first tries strategies that leave every input where it is. If one
// of them has no collectives inside, it is optimal. Otherwise it walks
// assignments mesh dim by mesh dim under a rising limit on the bound of their
// moves (MoveBound). It then prices the rest in the order of their bounds,
// until no bound is below the best price.
#pragma once

#include "propagate/bound_op.h"
#include "propagate/strategy_price.h"

#include <shardprop/strategy/op_strategy.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace shardprop {

struct ChosenStrategy {
  Assignment assignment;
  FactorShardings shardings;
  std::vector<Layout> operands;  // inputs first
  std::vector<CollectiveStep> inside;
  // One plan per input; null for an input that stays. Empty if all inputs stay.
  std::vector<std::shared_ptr<const RedistributePlan>> plans;
  std::int64_t moved_nanoseconds = 0;
  std::int64_t inside_nanoseconds = 0;
  std::int64_t compute_nanoseconds = -1;  // -1: not asked for
  int moved_inputs = 0;
  // True if no other strategy leaves all inputs where they are, and this one
  // has no collectives. It is then the choice for all sizes.
  bool is_only_fit = false;
};

// Why no strategy was found.
struct NoChoice {
  bool written_moves = false;  // a strategy would move a written operand
  Error refused;               // the error of the planner
};

// Precondition: `given` has canonical layouts, after
// without_single_ranks().
tl::expected<ChosenStrategy, NoChoice> choose_strategy(
    const SearchContext& context, const BoundOp& call,
    std::span<const Layout> given);

}  // namespace shardprop

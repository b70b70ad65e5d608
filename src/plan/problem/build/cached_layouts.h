// HeldSet is the set of layouts in which a buffer may be cached between two
// uses: one layout, or two.
#pragma once

#include "plan/problem/plan_problem.h"

#include <cstdint>
#include <vector>

namespace shardprop {

struct HeldSet {
  StorageState first = 0;
  StorageState second = 0;  // equal to `first` if one layout is cached

  bool has(StorageState state) const {
    return first == state || second == state;
  }
};

// Returns the sets of cached layouts that a buffer may have. For an input,
// `first` is the layout that it was given in. plan_assignment.h defines the
// space.
std::vector<HeldSet> held_sets(const PlanProblem& problem,
                               const PlanStorage& storage);

// Making is one redistribution between two layouts of a buffer.
struct Making {
  StorageState to = 0;
  StorageState from = 0;
};

// Transition lists the redistributions, in order, from the cached layouts
// `from` to the cached layouts `to`.
struct Transition {
  std::int64_t nanoseconds = 0;
  std::int64_t hidden = 0;  // as StorageClass::Move's
  std::vector<Making> makings;
  // False if one of the moves is not reachable. The sum of reachable ones may
  // be kUnreachable or more.
  bool is_possible = true;
};
Transition transition(const PlanStorage& storage, HeldSet from, HeldSet to);

// Taking is the transfer of least time that produces the layout `wanted` from
// the cached layouts `held`.
struct Taking {
  std::int64_t nanoseconds = 0;
  std::int64_t hidden = 0;
  StorageState from = 0;
  bool is_possible = true;
};
Taking taking(const PlanStorage& storage, HeldSet held, StorageState wanted);

// Returns the cost of the copies that lead from one layout to another, if they
// are made once a step: the share of one micro-batch. Each copy is rounded by
// itself, as evaluate() does. A kernel boundary is paid in every micro-batch.
// Precondition: `to` is reachable.
Taking once_a_step(const PlanProblem& problem, const PlanStorage& storage,
                   StorageState from, StorageState to);

}  // namespace shardprop

// What a storage may be held in: one state, or two.
#pragma once

#include "plan/plan_problem.h"

#include <cstdint>
#include <vector>

namespace shardprop {

struct HeldSet {
  StorageState first = 0;
  StorageState second = 0;  // equal to `first`: one state only

  bool has(StorageState state) const {
    return first == state || second == state;
  }
};

// Inputs: `first` is the state it was given in. The space is stated in
// plan_assignment.h.
std::vector<HeldSet> held_sets(const PlanProblem& problem,
                               const PlanStorage& storage);

// One state made from another.
struct Making {
  StorageState to = 0;
  StorageState from = 0;
};

// What is made, in order, to hold `to` where `from` is held.
struct Transition {
  std::int64_t nanoseconds = 0;
  std::int64_t hidden = 0;  // as StorageClass::Move's
  std::vector<Making> makings;
  // False if one of the moves is not reachable. The sum of reachable ones may be
  // kUnreachable or more.
  bool is_possible = true;
};
Transition transition(const PlanStorage& storage, HeldSet from, HeldSet to);

// The way of least transfer to take `wanted` where `held` is held.
struct Taking {
  std::int64_t nanoseconds = 0;
  std::int64_t hidden = 0;
  StorageState from = 0;
  bool is_possible = true;
};
Taking taking(const PlanStorage& storage, HeldSet held, StorageState wanted);

// The copies that lead from one layout to another, made once a step: the share
// of a micro-batch. Each copy is rounded by itself, as evaluate() does. A kernel
// boundary is paid in every micro-batch. Precondition: `to` is reachable.
Taking once_a_step(const PlanProblem& problem, const PlanStorage& storage,
                   StorageState from, StorageState to);

}  // namespace shardprop

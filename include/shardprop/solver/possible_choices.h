// `possible_choices()` finds the choices that may be part of an assignment below
// a target. It uses the messages of the dual bound alone, without presolve and
// without a search.
//
// For example, with target 100 the result has the bound 97 and {0, 3} for
// variable 4: each assignment in which that variable has another choice costs at
// least 100.
//
// Variables are neither merged nor removed, so that messages stay valid for other
// costs. A caller that changes costs or forbids choices step by step starts from
// the messages of the last step (SolveOptions::messages).
#pragma once

#include <shardprop/solver/solve.h>

#include <cstdint>
#include <vector>

namespace shardprop::solver {

// `PossibleChoices` is the result of possible_choices().
struct PossibleChoices {
  // No assignment costs less than this and the target.
  Int128 lower_bound = 0;
  // By variable, in ascending order: each assignment with a missing choice costs
  // at least the target. Empty if every assignment does.
  std::vector<std::vector<std::uint32_t>> choices;
  // The choices to which the messages lead; empty if `choices` is. An edge may
  // forbid two of them together.
  Assignment decoded;
  std::uint64_t work = 0;  // table entries touched
};

// Sweeps until the bound reaches the target or rises slowly, or a limit ends
// it. The limits, the stop token and the messages of `options` are used.
PossibleChoices possible_choices(const Problem& problem, Int128 target,
                                 const SolveOptions& options);

}  // namespace shardprop::solver

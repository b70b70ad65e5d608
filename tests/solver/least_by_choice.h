// The least cost with each choice, by trying all assignments, and the check of a
// dual bound against it.
#pragma once

#include <shardprop/solver/checker.h>
#include <shardprop/solver/problem.h>
#include <solver/bound/dual_bound.h>
#include <solver/model/network.h>
#include <solver/presolve/core.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

namespace shardprop::solver::testing {

// By variable of the core and choice: the least cost of assignments that have
// the choice; null if no feasible assignment has it.
using LeastByChoice = std::vector<std::vector<std::optional<Int128>>>;

// Precondition: `core` has all variables of `network` that are alive.
inline LeastByChoice least_by_choice(const Problem& problem,
                                     const Network& network, const Core& core) {
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  LeastByChoice out;
  for (int v = 0; v < core.size(); ++v) {
    out.emplace_back(at(core.choices(v)));
  }
  std::vector<int> choices(network.variables.size(), 0);
  const auto choice = [&](int v) -> int& {
    return choices[at(core.network_variable[at(v)])];
  };
  while (true) {
    const auto judged = evaluate(problem, network.expand(choices));
    for (int v = 0; v < core.size() && judged->feasible(); ++v) {
      std::optional<Int128>& least = out[at(v)][at(choice(v))];
      least = std::min(least.value_or(judged->cost), judged->cost);
    }
    int v = 0;
    while (v < core.size() && ++choice(v) == core.choices(v)) choice(v++) = 0;
    if (v == core.size()) return out;
  }
}

// Checks that the best bound, with what each single choice adds to it, is above
// no assignment. Returns how many choices have one. `dual` is at its best bound.
inline int check_choice_bounds(const Network& network, const Core& core,
                               const DualBound& dual,
                               const LeastByChoice& least) {
  // Costs of the network are rounded down to units.
  const auto nanoseconds = [&](double bound) {
    return (network.offset + static_cast<Int128>(std::ceil(bound))) *
           network.unit;
  };
  const std::vector<double> extra = dual.choice_bounds();
  int compared = 0;
  for (std::size_t v = 0; v < least.size(); ++v) {
    for (std::size_t c = 0; c < least[v].size(); ++c) {
      if (!least[v][c]) continue;
      CHECK((nanoseconds(dual.best_bound()) <= *least[v][c]));
      const double bound =
          dual.best_bound() + extra[static_cast<std::size_t>(core.at[v]) + c];
      CHECK((nanoseconds(bound) <= *least[v][c]));
      ++compared;
    }
  }
  return compared;
}

}  // namespace shardprop::solver::testing

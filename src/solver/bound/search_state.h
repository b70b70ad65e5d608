// What the parts of solve() share: the network, what is known of its optimum,
// and the core that is searched and bounded.
#pragma once

#include <shardprop/solver/solve.h>

#include "base/index.h"
#include "solver/presolve/core.h"
#include "solver/bound/dual_bound.h"
#include "solver/model/incumbent.h"
#include "solver/model/network.h"
#include "solver/presolve/pass_clock.h"
#include "solver/model/stop_signal.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace shardprop::solver {

// Doubles count exactly up to here.
inline constexpr double kMostExact = 0x1p52;
// Largest table of an elimination that is tried without being asked for.
inline constexpr std::size_t kEliminationCap = 1U << 25;

struct SearchState {
  // Both must outlive it.
  SearchState(const Problem& problem, const SolveOptions& the_options,
              bool sums_fit = false)
      : options(the_options),
        stop(stop_signal(the_options)),
        network(problem, sums_fit),
        best(problem, network) {}

  // The best known cost on the core; infinite where none is known.
  double core_target() const {
    return best.known()
               ? static_cast<double>(best.cost_in_units() - network.offset)
               : kInfinity;
  }
  // Between the dual bound and the best known cost; infinite without either.
  double dual_gap() const {
    return dual && best.known() ? core_target() - dual->best_bound()
                                : kInfinity;
  }
  bool dual_has_bound() const {
    return dual != nullptr && dual->best_bound() > -kInfinity;
  }
  // What has been worked, with what was spent elsewhere since it was counted.
  std::uint64_t work_so_far() const {
    return work + (spent_elsewhere - counted_elsewhere);
  }
  // Offers choices of some of the network's variables, those in `variable`;
  // the others, which no reduction has left, take their first.
  template <class Choice>
  void offer(const std::vector<Choice>& choices,
             const std::vector<int>& variable) {
    std::vector<int> all(network.variables.size(), 0);
    for (std::size_t v = 0; v < variable.size(); ++v) {
      all[index(variable[v])] = static_cast<int>(choices[v]);
    }
    best.offer(std::move(all));
  }

  const SolveOptions& options;
  StopSignal stop;
  PassClock clock;
  Network network;
  Incumbent best;
  std::unique_ptr<Core> core;  // what the reductions leave
  std::unique_ptr<Core> dual_core;
  std::unique_ptr<DualBound> dual;
  std::uint64_t work = 0;             // as far as it has been counted
  std::uint64_t spent_elsewhere = 0;  // work of what is gone again
  std::uint64_t counted_elsewhere = 0;
};

}  // namespace shardprop::solver

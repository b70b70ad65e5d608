// SearchState is shared by the parts of solve(). It holds the network, the
// incumbent, and the core that is searched and bounded.
#pragma once

#include <shardprop/solver/solve.h>

#include "base/index.h"
#include "base/saturating.h"
#include "solver/bound/dual_bound.h"
#include "solver/model/incumbent.h"
#include "solver/model/network.h"
#include "solver/model/solve_budget.h"
#include "solver/presolve/core.h"
#include "solver/presolve/pass_table.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace shardprop::solver {

// Doubles are exact up to this number.
inline constexpr double kMostExact = 0x1p52;

struct SearchState {
  // Both arguments must outlive the object.
  SearchState(const Problem& problem, const SolveOptions& the_options,
              bool sums_fit = false)
      : options(the_options),
        budget(budget_of(the_options)),
        network(problem, sums_fit),
        best(problem, network) {}

  // Returns the best known cost on the core; infinite if none is known.
  double core_target() const {
    return best.known()
               ? static_cast<double>(best.cost_in_units() - network.offset)
               : kInfinity;
  }
  // Returns the gap between the dual bound and the best known cost; infinite
  // without either.
  double dual_gap() const {
    return dual && best.known() ? core_target() - dual->best_bound()
                                : kInfinity;
  }
  bool dual_has_bound() const {
    return dual != nullptr && dual->best_bound() > -kInfinity;
  }
  // Returns the work so far, including the work spent elsewhere since it was
  // counted.
  std::uint64_t work_so_far() const {
    return budget.work_spent() + (spent_elsewhere - counted_elsewhere);
  }
  // Records what a pass has gained since the incumbent was in state `before`.
  void credit(Pass pass, const Incumbent::State& before) {
    if (best.state() == before) return;
    passes.add_gain(pass, 1, saturated(best.gap_closed_since(before)));
  }
  // Runs a procedure, and records its time, its work and its gains.
  template <class Work>
  auto run(Pass pass, Work&& work) {
    struct Record {
      SearchState& state;
      Pass pass;
      Incumbent::State before;
      std::uint64_t spent;
      ~Record() {
        state.passes.add_work(pass, state.spent_elsewhere - spent);
        state.credit(pass, before);
      }
    } const record{*this, pass, best.state(), spent_elsewhere};
    return passes.time(pass, std::forward<Work>(work));
  }
  // Offers choices of the variables in `variable`. The other variables were
  // eliminated and take their first choice.
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
  // Charged with the work of all parts when workers synchronise.
  Budget budget;
  PassTable passes;
  Network network;
  Incumbent best;
  std::unique_ptr<Core> core;  // the reduced network
  std::unique_ptr<Core> dual_core;
  std::unique_ptr<DualBound> dual;
  std::uint64_t spent_elsewhere = 0;  // work of deleted parts
  std::uint64_t counted_elsewhere = 0;
};

}  // namespace shardprop::solver

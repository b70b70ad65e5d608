#include "solver/presolve/reduce.h"

#include "solver/presolve/passes.h"
#include "solver/tuning.h"

namespace shardprop::solver {
namespace {

void tidy(Network& network) {
  for (std::size_t v = 0; v < network.variables.size(); ++v) {
    if (!network.variables[v].alive) continue;
    network.normalise(static_cast<int>(v));
    network.tidy_segments(static_cast<int>(v));
  }
  network.normalise_edges();
  network.tidy_rows();
}

}  // namespace

void reduce(Network& network, const PassSet& passes, PassTable& table,
            const Budget& budget) {
  if (network.infeasible) return;
  const auto run = [&](Pass pass, bool (*reduction)(Network&)) {
    if (network.infeasible || !passes.enabled(pass) || budget.is_cut_off()) {
      return false;
    }
    return table.time(pass, [&] { return reduction(network); });
  };
  merge_parallel_edges(network);
  tidy(network);
  for (int round = 0; round < tuning::kMostReduceRounds && !network.infeasible;
       ++round) {
    bool changed = run(Pass::kArcConsistency, arc_consistency);
    // This runs before contraction: a variable with one choice left has only
    // separable edges to its neighbours. Contraction would otherwise move it
    // around.
    changed |= run(Pass::kSeparableEdges, drop_separable_edges);
    changed |= run(Pass::kContraction, contract_determined);
    changed |= run(Pass::kSeparableEdges, drop_separable_edges);
    if (!network.infeasible) tidy(network);
    changed |= run(Pass::kLowDegree, eliminate_low_degree);
    changed |= run(Pass::kDominance, dominance);
    if (!network.infeasible) tidy(network);
    if (!changed) break;
  }
}

}  // namespace shardprop::solver

// A plan soon, a better one later: the spaces of plans are searched from the
// smallest to the named one, each within its share of the time and work.
//
// On one or two mesh dims larger than 1 the named space is set up at once,
// unless reading a large graph has taken much of the time. On more of them
// there is first a plan over all mesh dims as one, which is as fast to find as
// on one mesh dim, then one over two runs of them. What cannot even be set up
// in time is left out; where nothing was, all replicated is a plan.
#pragma once

#include "plan/plan_solution.h"

#include <shardprop/plan/plan_space.h>

#include <chrono>
#include <optional>
#include <vector>

namespace shardprop {

struct StagedResult {
  // Those of the best plan, or of the space that was searched last.
  PlanProblem problem;
  PlanSolution solution;
  // What `solution.lower_bound` and a proof of infeasibility hold for: nothing
  // less than the named space where that was searched.
  PlanSpace space;
  // What kept the named space from being set up or searched to the end.
  std::optional<Error> failure;
  // The limit that ended the search; kNothing with a proof.
  RanOut ran_out = RanOut::kNothing;
  // What the known recipes cost, in the order of
  // PlanProblem::known_recipes(); empty if the options ask for a recipe.
  std::vector<PlanRecipe> recipes;
};

// Errors: those of PlanProblem::create(), and PlanSolution::failure, where
// there is no plan; that the time ran out is one only where nothing could be
// set up. Precondition: `options.start` is set.
Result<StagedResult> search_in_stages(const Graph& graph,
                                      const DeviceMesh& mesh,
                                      const Topology& topology,
                                      const OpLibrary& library,
                                      const PlanOptions& options);

}  // namespace shardprop

// search_in_stages() finds a plan early and a better one later. It searches the
// spaces of plans from the smallest to the named one, each within its share of
// the time and work.
//
// On one or two mesh dims larger than 1, the named space is built at once,
// unless reading a large graph has taken much of the time. On more of them, the
// first plan treats all mesh dims but the last as one. It is found as fast as
// on two mesh dims. If it is missing, plans over one run of mesh dims follow.
// Plans over two runs follow on more than three mesh dims, or if a plan is
// still missing.
//
// A space that cannot be built in time is skipped. The all-replicated plan is
// tried if a plan is missing, or if the best plan may be far from the optimum.
#pragma once

#include "base/budget.h"
#include "plan/evaluate/plan_solution.h"

#include <shardprop/plan/plan_space.h>

#include <optional>
#include <vector>

namespace shardprop {

struct StagedResult {
  // The problem and solution of the best plan or, without a plan, of the space
  // that was searched last.
  PlanProblem problem;
  PlanSolution solution;
  // The space for which `solution.lower_bound` and a proof of infeasibility
  // hold. It is at least the named space if that was searched.
  PlanSpace space;
  // Why the named space was not built or not searched to the end.
  std::optional<Error> failure;
  // The limit that ended the search; kNothing with a proof.
  RanOut ran_out = RanOut::kNothing;
  // Parts of the space without which the search went on, over all stages.
  std::vector<PlanSolution::LeftOut> left_out;
  // The search procedures of all stages, with the set-up of their spaces.
  std::vector<Procedure> procedures;
  // The costs of the known recipes, in the order of
  // PlanProblem::known_recipes(). Empty if the options ask for a recipe.
  std::vector<PlanRecipe> recipes;
  // How the search used RunControl::incumbent, in the last stage.
  std::optional<EarlierPlanNote> start;
};

// Errors: those of PlanProblem::create(), and PlanSolution::failure if no plan
// was found. Running out of time is an error only if no space could be built.
// The budget limits all stages together, set-up included.
Result<StagedResult> search_in_stages(
    const Graph& graph, const DeviceMesh& mesh, const Topology& topology,
    const OpLibrary& library, const PlanOptions& options, const Budget& budget);

}  // namespace shardprop

// PlanSolution is what a search of a plan problem found; SolveLimits bounds such
// a search.
#pragma once

#include "plan/plan_assignment.h"

#include <shardprop/plan/plan.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace shardprop {

struct PlanSolution {
  PlanStatus status = PlanStatus::kUnknown;
  // Within the memory limit; empty where none was found.
  std::optional<PlanAssignment> assignment;
  // Of the assignment, or of the one that came nearest to the limit.
  PlanEvaluation evaluation;
  // No assignment costs less.
  std::int64_t lower_bound = 0;
  // Infeasible: slots whose memory cannot be kept within the limit together,
  // and by how many bytes each falls short at least.
  struct ShortSlot {
    std::int64_t slot = 0;
    std::int64_t bytes_short = 0;
  };
  std::vector<ShortSlot> clash;
  bool clash_irreducible = false;
  // Parameters of equal layers lie differently: what the best plan found that
  // lays them out alike costs more. Empty where they lie alike.
  std::optional<std::int64_t> alike_costs_more;
  std::uint64_t work = 0;  // of the solver, in table entries
  // The limit that ended the search; kAttempts where it ended by itself,
  // kNothing where there is a proof.
  RanOut ran_out = RanOut::kNothing;
  // The best plans of the known recipes, as far as the search looked at them.
  // Their status is that of the recipe's part of the space.
  std::vector<PlanRecipe> recipes;
  // Why the search ended before its limits: kProblemTooLarge, kOutOfMemory.
  // What was known by then stands in the other fields.
  std::optional<Error> failure;
};

struct SolveLimits {
  double seconds = 60;
  std::optional<std::uint64_t> work;  // of the solver, in table entries
  // Whether, among plans of that cost, one is looked for that takes less memory
  // and lays out equal layers alike.
  bool break_ties = true;
  // Whether the search begins with plans of small parts of the space
  // (first_plans.h).
  bool first_plans = true;
  // Whether a proof that no plan fits comes with PlanSolution::clash.
  bool explains = true;
};

}  // namespace shardprop

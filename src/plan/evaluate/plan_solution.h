// PlanSolution is the result of a search of a plan problem.
#pragma once

#include "plan/evaluate/plan_assignment.h"

#include <shardprop/base/procedure.h>
#include <shardprop/plan/plan_note.h>
#include <shardprop/plan/plan_recipe.h>
#include <shardprop/plan/ran_out.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shardprop {

struct PlanSolution {
  PlanStatus status = PlanStatus::kUnknown;
  // Within the memory limit; empty if none was found.
  std::optional<PlanAssignment> assignment;
  // Whether a user gave the assignment. It may be outside the space.
  bool is_given = false;
  // The figures of the assignment. If it is empty, those of the assignment with
  // the lowest peak bytes.
  PlanEvaluation evaluation;
  // No assignment costs less than this.
  std::int64_t lower_bound = 0;
  // The bound without the memory limit, if the best plan without it does not fit.
  std::optional<std::int64_t> bound_without_limit;
  // Whether that plan was searched for: the limits may end a search before.
  bool is_limit_tested = false;
  // If infeasible: slots whose memory cannot be kept within the limit together,
  // and the least bytes that each of them lacks.
  struct ShortSlot {
    std::int64_t slot = 0;
    std::int64_t bytes_short = 0;
  };
  std::vector<ShortSlot> conflict;
  bool conflict_irreducible = false;
  // The added cost of the best plan found in which the parameters of equal
  // layers have the same layouts. Empty if they have the same layouts in this
  // plan, or if no other plan was found.
  std::optional<std::int64_t> uniform_costs_more;
  std::uint64_t work = 0;  // of the solver, in table entries
  // The records of the search, in the order of kPlanProcedures and Pass.
  std::vector<Procedure> procedures;
  // The limit that ended the search. It is kAttempts if the search ended by
  // itself, and kNothing with a proof.
  RanOut ran_out = RanOut::kNothing;
  // The overlap multipliers of the best bound, by load of an overlap window
  // (window_loads.h); empty if none were tried.
  std::vector<std::int64_t> overlap_multipliers;
  // The messages for the next search, if RunControl::keeps_warm_start.
  std::shared_ptr<const struct WarmStart> warm_start;
  // The best plans of the known recipes that the search solved. Their status
  // holds for the recipe's part of the space.
  std::vector<PlanRecipe> recipes;
  // How the search used the plan that it was to start from
  // (RunControl::start_from). Null if the search has no such plan.
  std::optional<EarlierPlanNote> start;
  // The search left these parts of the space out, because memory was refused or
  // because they cannot be counted. Proofs do not rest on them.
  struct LeftOut {
    std::string part;  // "the recipe fsdp=dp"
    Error why;
  };
  std::vector<LeftOut> left_out;
  // Why the search ended before its limits: kProblemTooLarge, kOutOfMemory. The
  // other fields hold the results so far.
  std::optional<Error> failure;
};

// Adds the failure of a search of a part of the space, under the name of the
// part, and the parts that this search left out itself.
inline void add_left_out(const std::string& part, const PlanSolution& found,
                         std::vector<PlanSolution::LeftOut>& to) {
  if (found.failure) to.push_back({part, *found.failure});
  to.insert(to.end(), found.left_out.begin(), found.left_out.end());
}

// SearchScope says which questions a search answers.
struct SearchScope {
  // Whether to search, among plans of equal cost, for one that takes less
  // memory and gives equal layers the same layouts.
  bool break_ties = true;
  // Whether the search begins with plans of small parts of the space
  // (first_plans.h).
  bool first_plans = true;
  // Whether a proof that no plan fits comes with PlanSolution::conflict.
  bool explains = true;
  // The overlap multipliers from which the search begins. If they are empty,
  // it begins with overlappable time free.
  std::vector<std::int64_t> overlap_multipliers = {};
  // RunControl::share_if_limit_binds.
  double share_if_limit_binds = 1;
  // In nanoseconds: the search ends once no plan costs less; null if it shall find
  // its best plan at any cost.
  std::optional<std::int64_t> cost_to_beat = {};
  // In nanoseconds: the cost of a plan that is known elsewhere. The search goes on
  // above it, but leaves parts of the space out that only hold plans above it.
  std::optional<std::int64_t> known_cost = {};
};

}  // namespace shardprop

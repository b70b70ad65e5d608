// `BestStage` keeps the best result of the stages of a search. Each stage searched
// another space of plans (staged_search.h).
//
//   BestStage best;
//   best.take({problem, solution_of_part, PlanSpace{1}});   // 5 us, optimal
//   best->solution.status                                   // kFeasible
//   best.take({problem, solution_of_all, PlanSpace{}});     // 4 us, optimal
//   best->solution.status                                   // kOptimal
#pragma once

#include "plan/evaluate/plan_solution.h"
#include "plan/problem/plan_problem.h"

#include <shardprop/plan/plan_space.h>

#include <cstdint>
#include <optional>
#include <utility>
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
  // A bound of the plans of the named space whose equal layers may have different
  // layouts; empty if it is not known.
  std::optional<std::int64_t> free_lower_bound = std::nullopt;
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
  // How the search used RunControl::start_from, in the last stage.
  std::optional<EarlierPlanNote> start;
};

class BestStage {
 public:
  explicit operator bool() const { return best_.has_value(); }
  bool has_plan() const { return best_ && best_->solution.assignment; }
  const StagedResult* operator->() const { return &*best_; }
  StagedResult* operator->() { return &*best_; }
  StagedResult result() && { return *std::move(best_); }

  // Keeps the cheaper plan, and the later one at equal cost. `next` is of a
  // space that contains those of all results before. Four rules hold:
  //   1. A proof for a part of the named space is no proof for the named space.
  //   2. A plan that is kept has the bound of the larger space.
  //   3. Without a plan, a proof that there is none is kept, and so is the
  //      result of the named space.
  //   4. A plan that a user gave is dropped if the larger space proves that it is
  //      outside of it.
  void take(StagedResult next);
  // Keeps a plan of the space that was searched last if it is cheaper. It has
  // the bound of that space. Precondition: has_plan().
  void take_member(StagedResult next);

 private:
  bool refutes_given(const StagedResult& next) const;

  std::optional<StagedResult> best_;
  // The bound of the joined mesh dims, while the best plan is one of these.
  std::optional<std::int64_t> joined_bound_;
};

}  // namespace shardprop

// match_earlier_plan() finds the choices of a plan problem that an earlier plan
// made. The plan may be of the same graph, or of one whose names mostly agree.
//
//   earlier plan:  mm_1 reads S(0),R and R,S(1);  mm_2 is missing
//   this graph:    mm_1, mm_2
//   kept:          mm_1 keeps the choices with these layouts; mm_2 is new and
//                  keeps all of its choices
//
// Operators are matched by name and kind, tensors by name. If an operator has no
// strategy with the layouts of the plan, it keeps the strategies that shard the
// same factors.
#pragma once

#include "plan/evaluate/plan_solution.h"
#include "plan/problem/constraints/restriction.h"
#include "plan/problem/plan_problem.h"

#include <shardprop/plan/plan.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace shardprop {

struct EarlierPlanMatch {
  // The choices that the plan made; all choices of a variable that it does not
  // know.
  Restriction kept;
  // By PlanVariableId: whether the plan does not know the variable, or pinned it
  // by a pin that the problem does not have.
  std::vector<bool> is_new;
  // The overlap multipliers of the plan; empty if they are not from 0 to 1 or of
  // other windows.
  std::vector<std::int64_t> overlap_multipliers;
  EarlierPlanNote start;

  // Returns whether the problem has the plan's choices of all variables.
  bool is_allowed() const {
    return std::none_of(kept.left.begin(), kept.left.end(),
                        [](const auto& left) { return left.empty(); });
  }
};

EarlierPlanMatch match_earlier_plan(const PlanProblem& problem,
                                    const Plan& earlier);

// Returns `kept` with all choices of the new variables and of those near one,
// so that these can follow it. Variables that share a buffer are one hop apart.
Restriction freed_around(const PlanProblem& problem,
                         const EarlierPlanMatch& match, int hops);
// The same with as many hops as free few variables.
Restriction freed_near(const PlanProblem& problem,
                       const EarlierPlanMatch& match);

// Returns the choices that the plan, or an assignment of the problem, made for
// the variable or for another one with the same choices, such as that of an equal
// layer. A layer may then follow another one.
Restriction choices_of_alike(const PlanProblem& problem,
                             const EarlierPlanMatch& match,
                             const PlanAssignment& assignment);

}  // namespace shardprop

// match_incumbent() finds the choices of a plan problem that an earlier plan
// made. The plan may be of the same graph, or of one whose names mostly agree.
//
//   earlier plan:  mm_1 reads S(0),R and R,S(1);  mm_2 is missing
//   this graph:    mm_1, mm_2
//   kept:          mm_1 keeps the choices with these layouts; mm_2 keeps all of
//                  its choices, and so do the operators that share a buffer
//                  with it
//
// Operators are matched by name and kind, tensors by name. If an operator has no
// strategy with the layouts of the plan, it keeps the strategies that shard the
// same factors.
#pragma once

#include "plan/evaluate/plan_solution.h"
#include "plan/problem/constraints/restriction.h"
#include "plan/problem/plan_problem.h"

#include <shardprop/plan/plan.h>

#include <cstdint>
#include <vector>

namespace shardprop {

struct IncumbentMatch {
  Restriction kept;
  // The overlap multipliers of the plan; empty if they are not from 0 to 1 or of
  // other windows.
  std::vector<std::int64_t> overlap_multipliers;
  EarlierPlanNote start;
};

IncumbentMatch match_incumbent(const PlanProblem& problem,
                               const Plan& incumbent);

}  // namespace shardprop

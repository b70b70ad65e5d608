// plan_by_cheapest_rule() chooses the rule of recomputation of a plan.
//
//   the best plan without second runs fits the limit   that plan; no other search
//   it does not fit                                    the cheapest plan of all rules
//
// The rules are none, full, selective, full:N for the values of N that bisection
// visits, and model if the model is checkpointed. Bisection ends once other values
// promise less than the gap.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/request/plan_request.h>

namespace shardprop {

// Answers the request with the cheapest rule. If several rules are tried, the plan
// has a RecomputeRulesNote, and its bounds hold for the plans of all of them. It has
// no bound for free layers if a rule has none. If no plan fits, the answer is that
// of the rule which lacks the fewest bytes.
// Preconditions: the request has a memory limit and a graph with a backward phase
// that is not the result of running(). Errors: those of plan_graph().
Result<PlannedGraph> plan_by_cheapest_rule(const PlanRequest& request);

}  // namespace shardprop

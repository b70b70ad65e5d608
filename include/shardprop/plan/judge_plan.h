// judge_plan(): whether a saved plan holds together, and what it costs.
//
//   JudgedPlan judged = judge_plan(saved, graph, *library).value();
//   // judged.plan: the same choices and copies, all figures worked out anew
//   // judged.differences: "nodes[3].compute_us: 0 in the file, is 7.0"
//
// Nothing of the file is believed but the choices, mesh, topology and options:
// every operator's layouts must be those of one of its strategies, every use
// must find what it takes, and evaluate() says what that costs and holds. Only
// status and bound are kept, as far as they agree with that, and the reasons
// for copies: finding them takes as long as planning anew
// (Plan::is_proof_given).
#pragma once

#include <shardprop/graph/graph.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/plan/plan.h>
#include <shardprop/plan/plan_options.h>

#include <string>
#include <vector>

namespace shardprop {

struct JudgedPlan {
  Plan plan;
  // Figures of the file that are not those of its plan, by their place in it.
  std::vector<std::string> differences;
};

// Errors: kPlanOtherGraph, kPlanFile (choices that no operator has, copies
// that are not there), those of make_plan() for the options and the
// topology of the file.
Result<JudgedPlan> judge_plan(const Plan& saved, const Graph& graph,
                              const OpLibrary& library);

// What a saved plan was made for; limits and threads of its search are left at
// their defaults. Error: kPlanFile.
Result<PlanOptions> options_of(const Plan& saved);

}  // namespace shardprop

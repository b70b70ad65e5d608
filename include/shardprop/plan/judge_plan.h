// `judge_plan` checks that a saved plan is consistent, and recomputes its cost.
//
//   JudgedPlan judged = judge_plan(saved, graph, *library).value();
//   // judged.plan: the same choices and copies, all figures recomputed
//   // judged.differences: "nodes[3].compute_us: 0 in the file, is 7.0"
//
// It trusts only the choices, mesh, topology and options of the file:
//
// 1. The layouts of every operator must be those of one of its strategies.
// 2. Every use must find the value that it reads.
// 3. evaluate() recomputes cost and memory.
//
// Status and bound are kept if they agree with the recomputed figures. The
// reasons for copies are kept, since recomputing them takes as long as planning
// (Plan::is_proof_given).
#pragma once

#include <shardprop/graph/graph.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/plan/plan.h>
#include <shardprop/plan/plan_options.h>

#include <string>
#include <vector>

namespace shardprop {

// `JudgedPlan` is the recomputed plan, with the wrong figures of its file.
struct JudgedPlan {
  Plan plan;
  // Figures of the file that differ from the recomputed ones, with their JSON
  // path.
  std::vector<std::string> differences;
  // If not empty, an earlier version saved the file, and the figures that depend
  // on overlap windows are those of the program that runs now. The text has the
  // time of the file and of the plan.
  std::string note;
};

// Errors: kPlanOtherGraph, kPlanFile (a choice that its operator does not have,
// a missing copy), and those of make_plan() for the options and the topology of
// the file.
Result<JudgedPlan> judge_plan(const Plan& saved, const Graph& graph,
                              const OpLibrary& library);

// Returns the options with which a saved plan was made; limits and threads of
// its search have their defaults. Error: kPlanFile.
Result<PlanOptions> options_of(const Plan& saved);

}  // namespace shardprop

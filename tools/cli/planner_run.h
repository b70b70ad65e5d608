// PlannerRun is one run of the planner by a command. A signal ends the run with
// the best answer so far, and a terminal shows its progress.
//
//   PlannerRun run(request, console);
//   Result<Plan> made = shardprop::plan(request);
//   run.end();                 // erases the line of progress
//   if (run.is_interrupted())  // the plan is the best so far
#pragma once

#include "cli/command.h"
#include "cli/interruption.h"

#include <shardprop/request/plan_request.h>

#include <memory>

namespace shardprop::cli {

class PlannerRun {
 public:
  // Sets stop and progress of the request. `console` must outlive the request.
  PlannerRun(PlanRequest& request, Console& console);

  void end();
  bool is_interrupted() const { return interruption_->came(); }

 private:
  Console& console_;
  std::shared_ptr<const Interruption> interruption_;
};

}  // namespace shardprop::cli

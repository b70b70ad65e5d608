// search_stages() lists the spaces of plans that a search enters one after another:
// small ones, in which mesh dims are joined, and then the named space.
#pragma once

#include "plan/tuning.h"

#include <shardprop/base/result.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/plan/plan_question.h>
#include <shardprop/plan/plan_space.h>

#include <vector>

namespace shardprop {

// Stage is a space of plans, with the shares of the budget by which it is built
// and searched.
struct Stage {
  PlanSpace space;
  tuning::StageShares shares;
  // Skipped if there is a plan.
  bool without_plan = false;
};

// Error: that of a recipe which the mesh does not fit.
Result<std::vector<Stage>> search_stages(const DeviceMesh& mesh,
                                         const PlanQuestion& question);

}  // namespace shardprop

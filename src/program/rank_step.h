// One rank's part in a step of a redistribution: with whom, how terms are
// combined, and what a rank gives up or scales by itself. Whoever carries a
// step out, on memory or in operators, takes it from here.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/redistribute/redistribute_plan.h>

#include <cstdint>
#include <string>
#include <vector>

namespace shardprop {

// The group of one rank over the mesh dims of a step.
struct StepGroup {
  std::vector<Coordinate> members;  // in the order of the group
  std::int64_t index = 0;           // of this rank
};

StepGroup step_group(const RedistributeStep& step, const DeviceMesh& mesh,
                     const Coordinate& at);

// What the terms of the step's mesh dims are reduced by. Mesh dims that are
// averaged beside a sum are scaled for.
struct StepReduction {
  ReduceOp op = ReduceOp::kSum;
  DType dtype = DType::kF32;
  double scale = 1;  // of the result
};

// `where` stands in errors: kPlanStep (a step that reduces what it cannot).
Result<StepReduction> step_reduction(const RedistributeStep& step,
                                     const DeviceMesh& mesh,
                                     const std::string& where);

// R to P: whether this rank gives up its values for the op's neutral element,
// as all but the first do where the op would count them again.
bool gives_up(const RedistributeStep& step, const Coordinate& at);

// P(sum) <-> P(avg): the terms of an average are as many times the larger.
double rescaling(const RedistributeStep& step, const DeviceMesh& mesh);

// Error kPlanStep: a plan that was not made by the planner.
tl::unexpected<Error> broken_step(const std::string& where,
                                  const std::string& what);

}  // namespace shardprop

// One rank's part in a step of a redistribution: its group, the reduction of
// terms, and the values that the rank discards or scales locally. The executor
// and the emitter of PyTorch operators both use it.
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

// The reduction of the step's terms. If a sum also covers mesh dims with
// averages, `scale` divides by their sizes.
struct StepReduction {
  ReduceOp op = ReduceOp::kSum;
  DType dtype = DType::kF32;
  double scale = 1;  // of the result
};

// `where` is the location in errors. Error: kPlanStep (the step has a reduction
// that its terms do not allow).
Result<StepReduction> step_reduction(const RedistributeStep& step,
                                     const DeviceMesh& mesh,
                                     const std::string& where);

// R to P: true if this rank replaces its values by the neutral element of the
// reduction. All ranks but the first do, if the reduction would count the
// values repeatedly.
bool gives_up(const RedistributeStep& step, const Coordinate& at);

// P(sum) <-> P(avg): returns the factor of the terms. A term of an average is
// larger by the number of ranks.
double rescaling(const RedistributeStep& step, const DeviceMesh& mesh);

// Returns error kPlanStep, for a plan that the planner did not produce.
tl::unexpected<Error> broken_step(const std::string& where,
                                  const std::string& what);

}  // namespace shardprop

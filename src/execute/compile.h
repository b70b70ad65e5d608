// Compiles the steps of a plan to the steps of one rank's program.
#pragma once

#include "execute/program_body.h"

#include <shardprop/base/result.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/placement/tensor_meta.h>
#include <shardprop/redistribute/cross_mesh.h>
#include <shardprop/redistribute/redistribute_plan.h>

#include <string>

namespace shardprop::execute {

// A tensor on a mesh as one rank sees it.
struct RankView {
  const DeviceMesh& mesh;
  const TensorMeta& meta;
  Coordinate at;
};

// Compiles one step of a redistribution. Errors: kPlanStep, kReduction, kGroup.
Result<MoveStep> compile(const RedistributeStep& step, const RankView& view,
                         std::string where);

// Compiles the sends between meshes; either mesh may lack the rank.
Result<MoveStep> compile_sends(const CrossMeshPlan& plan, const TensorSpec& src,
                               const TensorSpec& dst, std::int64_t rank,
                               std::string where);

}  // namespace shardprop::execute

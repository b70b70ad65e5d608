#include "program/rank_step.h"

#include <span>

#include "base/index.h"

namespace shardprop {

tl::unexpected<Error> broken_step(const std::string& where,
                                  const std::string& what) {
  return fail(ErrorCode::kPlanStep, where + ": " + what,
              "run plans as the planner made them");
}

StepGroup step_group(const RedistributeStep& step, const DeviceMesh& mesh,
                     const Coordinate& at) {
  StepGroup group;
  const RankGroup ranks =
      mesh.group(std::span(step.mesh_dims.data(), step.mesh_dims.size()), at);
  const std::int64_t own = mesh.rank_at(at);
  for (std::int64_t i = 0; i < ranks.size(); ++i) {
    const std::int64_t rank = ranks.rank(i);
    if (rank == own) group.index = i;
    group.members.push_back(*mesh.coordinate_of(rank));
  }
  return group;
}

Result<StepReduction> step_reduction(const RedistributeStep& step,
                                     const DeviceMesh& mesh,
                                     const std::string& where) {
  if (!step.reduce_op) {
    return broken_step(where, "it does not say by what it reduces");
  }
  StepReduction made{*step.reduce_op, step.dtype};
  std::int64_t averaged = 1;
  for (const std::int32_t dim : step.mesh_dims) {
    const Placement placement = step.src[dim];
    if (!placement.is_partial()) {
      return broken_step(where, "mesh dim " + std::to_string(dim) + " of `" +
                                    to_string(step.src) + "` holds no terms");
    }
    if (placement.reduce_op() == *step.reduce_op) continue;
    if (placement.reduce_op() != ReduceOp::kAvg ||
        *step.reduce_op != ReduceOp::kSum) {
      return broken_step(where, "the terms of `" + to_string(step.src) +
                                    "` are not reduced by " +
                                    std::string(to_string(*step.reduce_op)));
    }
    averaged *= mesh.size(dim);
  }
  made.scale = 1 / static_cast<double>(averaged);
  return made;
}

bool gives_up(const RedistributeStep& step, const Coordinate& at) {
  for (const std::int32_t dim : step.mesh_dims) {
    if (!step.src[dim].is_replicate() || !step.dst[dim].is_partial()) continue;
    const ReduceOp op = step.dst[dim].reduce_op();
    const bool counts = op == ReduceOp::kSum || op == ReduceOp::kProduct ||
                        op == ReduceOp::kBxor;
    if (counts && at[index(dim)] != 0) return true;
  }
  return false;
}

double rescaling(const RedistributeStep& step, const DeviceMesh& mesh) {
  double scale = 1;
  for (const std::int32_t dim : step.mesh_dims) {
    const Placement from = step.src[dim];
    const Placement to = step.dst[dim];
    if (!from.is_partial() || !to.is_partial() || from == to) continue;
    const auto ranks = static_cast<double>(mesh.size(dim));
    scale *= to.reduce_op() == ReduceOp::kAvg ? ranks : 1 / ranks;
  }
  return scale;
}

}  // namespace shardprop

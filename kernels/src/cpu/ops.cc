#include <shardprop/kernels/cpu.h>

#include "../plan/elementwise_plan.h"
#include "../plan/pack_plan.h"
#include "box_runner.h"

namespace shardprop::kernels::cpu {

Status chunk_cat(const ChunkCatArgs& args, const CpuOptions& options) {
  PackPlan plan;
  if (Status status = plan_chunk_cat(args, &plan); !status.ok()) return status;
  BoxList boxes;
  boxes.reserve(plan.items.size());
  for (const PackItem& item : plan.items) append_pack_boxes(plan, item, &boxes);
  run_boxes(boxes,
            {.from = args.tensors[0].dtype,
             .to = args.out.dtype,
             .scale = args.scale},
            options);
  return {};
}

Status split_with_sizes_copy(const SplitWithSizesCopyArgs& args,
                             const CpuOptions& options) {
  BoxList boxes;
  if (args.shard_dims.empty()) {
    if (Status status = plan_split(args, &boxes); !status.ok()) return status;
  } else {
    PackPlan plan;
    if (Status status = plan_sharded_split(args, &plan); !status.ok()) {
      return status;
    }
    boxes.reserve(plan.items.size());
    for (const PackItem& item : plan.items) {
      append_unpack_boxes(plan, item, &boxes);
    }
  }
  if (boxes.empty()) return {};
  run_boxes(
      boxes,
      {.from = args.in.dtype, .to = args.outs[0].dtype, .scale = args.scale},
      options);
  return {};
}

Status strided_copy(const StridedCopyArgs& args, const CpuOptions& options) {
  BoxList boxes;
  if (Status status = plan_strided_copy(args, &boxes); !status.ok()) {
    return status;
  }
  run_boxes(boxes,
            {.from = args.in.dtype, .to = args.out.dtype, .scale = args.scale},
            options);
  return {};
}

Status fill(const FillArgs& args, const CpuOptions& options) {
  BoxList boxes;
  if (Status status = plan_fill(args, &boxes); !status.ok()) return status;
  run_boxes(boxes,
            {.from = args.out.dtype, .to = args.out.dtype, .fill = args.value},
            options);
  return {};
}

}  // namespace shardprop::kernels::cpu

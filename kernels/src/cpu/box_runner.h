#pragma once

#include <shardprop/kernels/cpu.h>

#include "../plan/box.h"

namespace shardprop::kernels::cpu {

// What happens to each element on its way.
struct Transform {
  DType from;
  DType to;
  double scale = 1.0;
  // Of type `to`: what boxes without a source are filled with. Null: zeros.
  const void* fill = nullptr;
};

// Runs simplified boxes, in any order and on all threads of the pool.
void run_boxes(const BoxList& boxes, const Transform& transform,
               const CpuOptions& options);

}  // namespace shardprop::kernels::cpu

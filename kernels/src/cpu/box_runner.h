#pragma once

#include <shardprop/kernels/cpu.h>

#include "../plan/box.h"

namespace shardprop::kernels::cpu {

// The transformation of each element.
struct Transform {
  DType from;
  DType to;
  double scale = 1.0;
  // The value of type `to` that fills boxes without a source. Null: zeros.
  const void* fill = nullptr;
};

// Runs simplified boxes, in any order and on all threads of the pool.
void run_boxes(const BoxList& boxes, const Transform& transform,
               const CpuOptions& options);

}  // namespace shardprop::kernels::cpu

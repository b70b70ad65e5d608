#pragma once

#include <cstdint>

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

// Whether a call that reads and writes so many bytes should store past the
// caches: once it exceeds the last level, nothing of it would be found there.
bool exceeds_caches(std::int64_t bytes);

// Makes streamed stores visible to other threads.
void finish_stores();

// How many pieces to cut a call of so many bytes into: one where waking
// threads would cost more than they save.
std::int64_t task_count(std::int64_t bytes, const ThreadPool* pool);

}  // namespace shardprop::kernels::cpu

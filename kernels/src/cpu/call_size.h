#pragma once

#include <cstdint>

#include <shardprop/kernels/thread_pool.h>

// Decisions that depend on the size of a call.
namespace shardprop::kernels::cpu {

// Makes streamed stores visible to other threads.
void finish_stores();

// Returns the number of pieces into which a call of this many bytes is split.
// It is one if waking threads would cost more time than they save.
std::int64_t task_count(std::int64_t bytes, const ThreadPool* pool);

}  // namespace shardprop::kernels::cpu

#pragma once

#include <cstdint>

#include <shardprop/kernels/thread_pool.h>

// What the size of a call decides.
namespace shardprop::kernels::cpu {

// Makes streamed stores visible to other threads.
void finish_stores();

// How many pieces to cut a call of so many bytes into: one where waking
// threads would cost more than they save.
std::int64_t task_count(std::int64_t bytes, const ThreadPool* pool);

}  // namespace shardprop::kernels::cpu

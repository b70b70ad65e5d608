#pragma once

#include <cstdint>

#include <shardprop/kernels/thread_pool.h>

// What the size of a call decides.
namespace shardprop::kernels::cpu {

// Whether a call that reads and writes so many bytes should store past the
// caches: once it exceeds the last level, nothing of it would be found there.
bool exceeds_caches(std::int64_t bytes);

// Makes streamed stores visible to other threads.
void finish_stores();

// How many pieces to cut a call of so many bytes into: one where waking
// threads would cost more than they save.
std::int64_t task_count(std::int64_t bytes, const ThreadPool* pool);

}  // namespace shardprop::kernels::cpu

// After every member has published its call, a collective is a set of
// independent tasks over memory. Any thread may run a task, and each task runs
// once.
//
// An exchange or a reduce-scatter has one task per receiving member, which
// copies or reduces the data of that member. An all-reduce has one task per
// member, each for an equal part of the data. The task reads its part of every
// input, reduces it block by block, and writes each block to every output.
//
// Only this task accesses the part, and it writes a block after it has read the
// entire block. Outputs may therefore be the inputs themselves.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/collective/collective_call.h>
#include <shardprop/collective/memory_ops.h>

#include <cstdint>
#include <span>

namespace shardprop::collective {

// Returns the bytes that all tasks together read and write.
std::int64_t task_bytes(std::span<const CollectiveCall> calls);

// Runs task `task` of calls.size(), with the MemoryOps of the member that runs
// it. bulk_copy.h describes `bulk`. Precondition: check_match() has passed.
// Errors: the errors of MemoryOps.
Result<void> run_task(std::span<const CollectiveCall> calls, std::size_t task,
                      MemoryOps& memory, bool bulk);

}  // namespace shardprop::collective

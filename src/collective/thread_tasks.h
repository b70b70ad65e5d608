// What there is to do for a collective once every member has published its
// call: independent tasks over memory, each run once by whichever thread takes
// it.
//
// Exchanges have one task per receiving member: it copies what the member gets.
// A reduce-scatter has one per member too. An all-reduce is cut into as many
// parts of the data as there are members: a task reads its part of every
// input, reduces it block by block and writes each block to every output. Only
// it touches that part, and it writes a block after reading all of it, so that
// outputs may be the inputs themselves.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/collective/collective_call.h>
#include <shardprop/collective/memory_ops.h>

#include <cstdint>
#include <span>

namespace shardprop::collective {

// Bytes read and written by all tasks together.
std::int64_t task_bytes(std::span<const CollectiveCall> calls);

// Task `task` of calls.size(), by the operations of whichever member runs it;
// `bulk`: see bulk_copy.h. Precondition: check_match(). Errors: those of
// MemoryOps.
Result<void> run_task(std::span<const CollectiveCall> calls, std::size_t task,
                      MemoryOps& memory, bool bulk);

}  // namespace shardprop::collective

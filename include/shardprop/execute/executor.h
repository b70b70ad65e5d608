// The executor: runs a RedistributeProgram on a Communicator.
//
// Every rank of the mesh (of both meshes) runs its own program of the same plan
// at the same place in its order of collectives. The source is read only; its
// strides may be anything. The result is row-major, in fresh memory, except
// where a plan has no steps: then it is the source itself.
//
// Memory: with a row-major source, what the run allocates and the source stay
// within the plan's peak_bytes. Payload: for each step, the most that any
// rank's communicator counts is the step's bytes_per_rank.
//
//   S(0) -> R of f32[5,3] on 2 ranks: rank 0 gives f32[3,3], rank 1 f32[2,3],
//   both get f32[5,3] in memory of their own; 36 bytes each are counted
//
// When a run fails nothing of its result can be had. What failed stands in the
// error with the step; the world is done for (communicator.h) unless the
// arguments were at fault.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/collective/communicator.h>
#include <shardprop/collective/local_tensor.h>
#include <shardprop/execute/redistribute_program.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace shardprop {

struct RunOptions {
  // Row-major memory for intermediate tensors and the result; the
  // communicator's own when empty.
  std::function<Result<LocalTensor>(const Dims& sizes, DType dtype)> allocate;
  // Called before each step with its place in the plan: for traces and tests.
  std::function<void(std::size_t step)> before_step;
};

struct RunReport {
  // By step, what this rank's communicator counted as payload.
  std::vector<std::int64_t> step_payload_bytes;
  std::int64_t allocations = 0;
  // The most that the source and all memory of the run took together.
  std::int64_t peak_bytes = 0;
};

// Errors: kLocalTensor (a source that is not the shard its layout says, or
// another rank's program), kCollectiveDevice (memory that is not the
// communicator's kind), kOutOfMemory, and those of
// Communicator::start() and Work::wait(). `report` may be null.
Result<LocalTensor> run(const RedistributeProgram& program,
                        Communicator& communicator, const LocalTensor& source,
                        const RunOptions& options = {},
                        RunReport* report = nullptr);

}  // namespace shardprop

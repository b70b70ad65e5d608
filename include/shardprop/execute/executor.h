// `run` executes a RedistributeProgram on a Communicator.
//
// Every rank of the mesh (of both meshes) runs its own program of the same plan
// at the same position in its order of collectives. The source is only read and
// may have any strides. The result is row-major, in new memory. A plan without
// steps returns the source itself.
//
// With a row-major source, the source and all allocations of the run stay
// within the plan's peak_bytes. For each step, the maximum over ranks of the
// counted payload is the step's bytes_per_rank.
//
//   S(0) -> R of f32[5,3] on 2 ranks: rank 0 has f32[3,3], rank 1 f32[2,3],
//   both get f32[5,3] in new memory; each counts 36 bytes of payload
//
// If a run fails, it returns no result, and the error names the step. Unless
// the arguments were invalid, the communicator is unusable afterwards
// (communicator.h). A failed run waits until the device has ended its work on
// memory of the run, at most a quarter of the communicator's timeout. After
// that time it keeps this memory for ever, and a note gives its bytes.
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

// `RunOptions` are hooks for memory and for the steps of a run.
struct RunOptions {
  // Allocates row-major memory for intermediate tensors and the result; if it
  // is empty, the communicator allocates.
  std::function<Result<LocalTensor>(const Dims& sizes, DType dtype)> allocate;
  // Called before each step with its index in the plan, for traces and tests.
  std::function<void(std::size_t step)> before_step;
};

// `RunReport` is the measured traffic and memory of one rank in one run.
struct RunReport {
  // Payload in bytes that this rank's communicator counted, by step.
  std::vector<std::int64_t> step_payload_bytes;
  std::int64_t allocations = 0;
  // Maximum of the bytes of the source and all memory of the run together.
  std::int64_t peak_bytes = 0;
};

// Runs the program on this rank's shard and returns its result. Errors:
// kLocalTensor (a source that is not the shard of its layout, or another rank's
// program), kCollectiveDevice (another kind of memory than the communicator's),
// kOutOfMemory, and those of Communicator::start() and Work::wait(). `report`
// may be null.
Result<LocalTensor> run(const RedistributeProgram& program,
                        Communicator& communicator, const LocalTensor& source,
                        const RunOptions& options = {},
                        RunReport* report = nullptr);

}  // namespace shardprop

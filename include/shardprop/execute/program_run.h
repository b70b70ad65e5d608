// `run` executes one rank's part of an SpmdProgram. An evaluator computes the
// operators: the reference, or the kernels of a framework.
//
// Every rank of the mesh makes the call at the same position in its order of
// collectives. Redistributions exchange data. A value is dropped when the
// program frees it, and a later read of it is an error. So is a read of the
// output of an overlapped step before the program waits for it.
//
//   w.0 = all_gather over dp (w); mm = aten.mm(x, w.0); free w.0
//
// Tensors are in host memory: the communicator is that of threads or MPI.
//
// `run` itself evaluates shardprop.random_bits (random_bits.h), for each
// element of the rank's part.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/collective/communicator.h>
#include <shardprop/collective/local_tensor.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/ops/op_schema.h>
#include <shardprop/program/program_time.h>
#include <shardprop/program/spmd_program.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace shardprop {

// Returns the outputs of a call, in the order of op.outputs; inputs are in the
// order of op.inputs.
using OperatorEvaluator = std::function<Result<std::vector<LocalTensor>>(
    const OpSchema& op, std::span<const LocalTensor> inputs)>;

// `ProgramRunOptions` are the precision of a run and a hook for its values.
struct ProgramRunOptions {
  OperatorEvaluator evaluate;
  std::shared_ptr<const OpLibrary> library;
  // If true, every float is computed as f64 and every complex number as c128,
  // so that rounding of short floats does not hide an error. Traffic is counted
  // in the dtypes of the program.
  bool widen = false;
  // Called for each produced value with a layout; inputs are not reported.
  std::function<Result<void>(ProgramValueId value, std::size_t step,
                             const LocalTensor& held)>
      made;
  // If not null, the run keeps a virtual clock, in which operators and
  // collectives take these times (program_time.h). It must outlive the run.
  // The clock ignores `micro_batches` and `once_a_step`: a run is one micro-batch
  // that has the mean load of all. So its time may be less than program_time() of
  // a plan with several micro-batches.
  const ProgramPrices* prices = nullptr;
};

// `ProgramRunReport` is the measured traffic and memory of one rank in one run.
struct ProgramRunReport {
  // Payload in bytes that this rank's communicator counted, by step of the
  // program and in its dtypes; 0 for other steps than collectives.
  std::vector<std::int64_t> step_payload_bytes;
  // The time of this rank's last step on the virtual clock; 0 without prices.
  // The ranks of a group wait for each other.
  std::int64_t virtual_nanoseconds = 0;
  // By step: collectives that this rank ran.
  std::vector<std::int64_t> step_calls;
  // Maximum of the bytes of values with layouts on this rank, in the dtypes of
  // the program; views count once.
  std::int64_t peak_bytes = 0;
};

// Returns the dtype in which a run stores values of `dtype`.
DType run_dtype(DType dtype, bool widen);

// Returns the outputs, in the order of program.outputs. `inputs` are this
// rank's parts, in the order of program.inputs. `report` may be null. The
// location of an error is the node. Errors:
//
//   * kProgramValue: a value was freed, never produced, or is still in flight; a
//     step frees or overwrites an operand of an overlapped step before the
//     wait; or the program does not wait for an overlapped step;
//   * kLocalTensor: a result does not have the shape of its layout, or a seed
//     is not one element of i64;
//   * kCollectiveDevice: memory of a device;
//   * those of OpLibrary::infer_results(), of the evaluator and of
//     communicators.
Result<std::vector<LocalTensor>> run(const SpmdProgram& program,
                                     Communicator& communicator,
                                     std::span<const LocalTensor> inputs,
                                     const ProgramRunOptions& options,
                                     ProgramRunReport* report = nullptr);

}  // namespace shardprop

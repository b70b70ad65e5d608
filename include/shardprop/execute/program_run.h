// run(SpmdProgram): one rank carries out its part of a program, with whatever
// evaluates operators: the reference, or a framework's kernels.
//
// Every rank of the mesh makes the call at the same place in its order of
// collectives. Redistributions exchange data. A value is dropped when the
// program frees it, and a later read of it is an error.
//
//   w.0 = all_gather over dp (w); mm = aten.mm(x, w.0); free w.0
//
// Tensors are in host memory: the communicator is threads' or MPI's.
//
// shardprop.random_bits is evaluated here by random_bits.h, for each element of
// the rank's part.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/collective/communicator.h>
#include <shardprop/collective/local_tensor.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/ops/op_schema.h>
#include <shardprop/program/spmd_program.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace shardprop {

// The outputs of a call, by op.outputs; inputs by op.inputs.
using OperatorEvaluator = std::function<Result<std::vector<LocalTensor>>(
    const OpSchema& op, std::span<const LocalTensor> inputs)>;

struct ProgramRunOptions {
  OperatorEvaluator evaluate;
  std::shared_ptr<const OpLibrary> library;
  // Whether every float runs as f64 and every complex number as c128, so that
  // the rounding of short floats hides no error. Traffic is counted in the
  // dtypes of the program.
  bool widen = false;
  // Called for each value with a layout, once it is made, inputs excluded.
  std::function<Result<void>(ProgramValueId value, std::size_t step,
                             const LocalTensor& held)>
      made;
};

struct ProgramRunReport {
  // By step of the program: what this rank's communicator counted as payload,
  // in the dtypes of the program; 0 where it is not a collective.
  std::vector<std::int64_t> step_payload_bytes;
  std::vector<std::int64_t> step_calls;  // likewise: collectives that it ran
  // The most that values with layouts took at once on this rank, in the dtypes
  // of the program; views count once.
  std::int64_t peak_bytes = 0;
};

// The dtype that values of a dtype have in a run.
DType run_dtype(DType dtype, bool widen);

// The outputs, by program.outputs. `inputs` are this rank's parts, by
// program.inputs. Errors: kProgramValue (a value that was freed or never made),
// kLocalTensor (an operator gives another shape than the layout says, or a seed
// is not one element of i64), kCollectiveDevice (memory of a device), those of
// OpLibrary::infer_results(), of the evaluator and of communicators. Their
// location is the node. `report` may be null.
Result<std::vector<LocalTensor>> run(const SpmdProgram& program,
                                     Communicator& communicator,
                                     std::span<const LocalTensor> inputs,
                                     const ProgramRunOptions& options,
                                     ProgramRunReport* report = nullptr);

}  // namespace shardprop

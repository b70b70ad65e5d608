// `run_collective()` runs one collective of a program on the rank's tensor.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/collective/communicator.h>
#include <shardprop/collective/local_tensor.h>
#include <shardprop/program/spmd_program.h>

namespace shardprop::execute {

// Returns the output for the rank of the communicator. `widen` is defined in
// ProgramRunOptions. All ranks of the group must call it. Errors: kPlanStep, and
// those of Communicator::run().
Result<LocalTensor> run_collective(const SpmdProgram& program,
                                   const ProgramCollective& collective,
                                   const LocalTensor& source,
                                   Communicator& communicator, bool widen);

}  // namespace shardprop::execute

// This header evaluates an SpmdProgram for one rank: it computes formulas one
// step at a time, and so stores no data per rank.
//
//   for (const ProgramStep& step : program.steps) {
//     if (const auto* op = std::get_if<ProgramOp>(&step.action)) {
//       RankOp call = rank_op(program, *op, at);
//       // make_op_schema(library.find(call.name), call.args, metas)
//     }
//   }
#pragma once

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/ops/op_schema.h>
#include <shardprop/program/spmd_program.h>

#include <string>
#include <vector>

namespace shardprop {

// `RankOp` is an operator call on local tensors, ready for make_op_schema().
// Its TensorArgs are indices into `tensors`; absent tensors are
// TensorArg::kNone.
struct RankOp {
  std::string name;
  std::vector<GivenArgument> args;
  std::vector<ProgramValueId> tensors;
};

// Returns the call that the rank at `at` makes for `op`.
RankOp rank_op(const SpmdProgram& program, const ProgramOp& op,
               const Coordinate& at);

// Returns the sizes of a rank's local tensor. Precondition: the value is not
// local.
Dims local_shape(const SpmdProgram& program, ProgramValueId id,
                 const Coordinate& at);

// Returns the redistribution that a collective between values with layouts
// performs, in the form for RedistributeProgram::create() (shardprop/execute).
RedistributePlan plan_of(const ProgramCollective& collective);

}  // namespace shardprop

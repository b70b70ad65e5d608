// A rank's view of an SpmdProgram: formulas evaluated, one step at a time, so
// that nothing is kept for ranks that nobody asks about.
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

// An operator call on local tensors: TensorArgs count in `tensors`, absent
// ones are TensorArg::kNone. Ready for make_op_schema().
struct RankOp {
  std::string name;
  std::vector<GivenArgument> args;
  std::vector<ProgramValueId> tensors;
};

RankOp rank_op(const SpmdProgram& program, const ProgramOp& op,
               const Coordinate& at);

// Sizes of what a rank holds of a value. Precondition: not local.
Dims local_shape(const SpmdProgram& program, ProgramValueId id,
                 const Coordinate& at);

// The redistribution that a collective between values with layouts is, as
// RedistributeProgram::create() (shardprop/execute) takes it.
RedistributePlan plan_of(const ProgramCollective& collective);

}  // namespace shardprop

#include <shardprop/program/spmd_program.h>

#include <shardprop/base/error.h>

#include <utility>

namespace shardprop {

std::string_view to_string(ProgramInputKind kind) {
  switch (kind) {
    case ProgramInputKind::kParameter:
      return "parameter";
    case ProgramInputKind::kBuffer:
      return "buffer";
    case ProgramInputKind::kConstant:
      return "constant";
    case ProgramInputKind::kUser:
      return "user_input";
    case ProgramInputKind::kOptimizerState:
      return "optimizer_state";
    case ProgramInputKind::kOptimizerStep:
      return "optimizer_step";
    case ProgramInputKind::kLearningRate:
      return "learning_rate";
    case ProgramInputKind::kSeed:
      return "seed";
  }
  return "?";
}

TensorSpec spec_of(const SpmdProgram& program, ProgramValueId id) {
  const ProgramValue& value = program.value(id);
  auto spec = TensorSpec::create(program.mesh, value.layout, value.meta);
  if (!spec) throw InternalError(spec.error().message);
  return *std::move(spec);
}

}  // namespace shardprop

#include <shardprop/program/spmd_program.h>

#include <shardprop/base/error.h>

#include <utility>

namespace shardprop {

TensorSpec spec_of(const SpmdProgram& program, ProgramValueId id) {
  const ProgramValue& value = program.value(id);
  auto spec = TensorSpec::create(program.mesh, value.layout, value.meta);
  if (!spec) throw InternalError(spec.error().message);
  return *std::move(spec);
}

}  // namespace shardprop

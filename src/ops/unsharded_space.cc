#include "ops/unsharded_space.h"

namespace shardprop {
namespace {

Operand whole(const TensorMeta& meta) {
  Operand operand;
  operand.dims.resize(static_cast<std::size_t>(meta.rank()));
  return operand;
}

}  // namespace

IndexSpace unsharded_space(const OpSchema& op) {
  IndexSpace space;
  for (const TensorMeta& meta : op.inputs) space.inputs.push_back(whole(meta));
  for (const TensorMeta& meta : op.outputs) {
    space.outputs.push_back(whole(meta));
  }
  space.is_free = op.function->is_view();
  space.is_random = op.function->is_random();
  space.seal();
  return space;
}

}  // namespace shardprop

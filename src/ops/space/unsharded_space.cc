#include "ops/space/unsharded_space.h"

namespace shardprop {
namespace {

Operand whole(const TensorMeta& meta) {
  Operand operand;
  operand.dims.resize(static_cast<std::size_t>(meta.rank()));
  return operand;
}

// Returns whether the arguments disable random numbers: the call is not in
// training, or the dropout probability is 0.
bool draws_nothing(const OpSchema& op) {
  for (const char* chance : {"dropout_p", "dropout"}) {
    if (op.has_arg(chance) && op.float_arg(chance).value_or(0) == 0)
      return true;
  }
  return op.has_arg("train") && !op.bool_arg("train").value_or(true);
}

}  // namespace

IndexSpace unsharded_space(const OpSchema& op) {
  IndexSpace space;
  for (const TensorMeta& meta : op.inputs) space.inputs.push_back(whole(meta));
  for (const TensorMeta& meta : op.outputs) {
    space.outputs.push_back(whole(meta));
  }
  space.is_free = op.function->is_view();
  space.is_random = op.function->is_random() && !draws_nothing(op);
  space.seal();
  return space;
}

}  // namespace shardprop

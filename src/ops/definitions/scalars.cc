// What comes back to the caller as a number and no tensor: ranks that each held
// a part would have one each.

#include "ops/definitions/families.h"

namespace shardprop {
namespace {

// No dim is cut.
BoundForm bind_read(const OpCall& call) {
  SpaceBuilder b;
  for (const TensorMeta& meta : call.op().inputs) {
    const Operand whole = b.per_dim(meta.shape());
    for (const DimFactors& dim : whole.dims) {
      b.block(dim, "the result is a number, not a tensor");
    }
    b.input(whole);
  }
  return b.bound();
}

BoundForm bind_item(const OpCall& call) {
  require(call.first().numel() == 1, "it has not one element");
  return bind_read(call);
}

BoundForm bind_equal(const OpCall& call) {
  require(call.tensor("self").dtype() == call.tensor("other").dtype(),
          "the tensors differ in dtype");
  return bind_read(call);
}

BoundForm bind_close(const OpCall& call) {
  (void)broadcast(call.tensor("self").shape(), call.tensor("other").shape());
  for (const char* tolerance : {"rtol", "atol"}) {
    require(call.op().float_arg(tolerance).value_or(0) >= 0,
            "a negative tolerance");
  }
  return bind_equal(call);
}

// Tensors of one size that are cut alike are of one size on every rank.
BoundForm bind_same_size(const OpCall& call) {
  const Dims& shape = call.tensor("self").shape();
  if (shape != call.tensor("other").shape()) return bind_read(call);
  SpaceBuilder b;
  const Operand whole = b.per_dim(shape);
  b.input(whole);
  b.input(whole);
  return b.bound();
}

}  // namespace

void define_scalars(Family f) {
  f.add("_local_scalar_dense", custom("item()", bind_item));
  f.add("equal", custom("equal()", bind_equal));
  f.add("allclose", custom("close()", bind_close));
  f.add("is_same_size", custom("same_size()", bind_same_size));
}

}  // namespace shardprop

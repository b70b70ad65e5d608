// moved(): a tensor in other memory.
#pragma once

#include <shardprop/collective/memory_ops.h>

namespace shardprop::testing {

// Returns the same tensor in the memory of `to`, with the same strides. Its
// elements fill one contiguous range of memory, in any order.
inline Result<LocalTensor> moved(MemoryOps& memory, const LocalTensor& tensor,
                                 MemoryOps& to) {
  const Dims stretch{tensor.numel()};
  auto made = to.allocate(stretch, tensor.dtype());
  if (!made) return made;
  const auto done =
      memory.transfer(LocalTensor::wrap(tensor.data(), stretch, tensor.dtype(),
                                        nullptr, tensor.device()),
                      *made);
  if (!done) return fail(done.error());
  return LocalTensor::wrap(made->data(), tensor.sizes(), tensor.strides(),
                           tensor.dtype(), made->owner(), made->device());
}

}  // namespace shardprop::testing

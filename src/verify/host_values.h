// Between the tensors of collectives and those of the reference, which see the
// same memory; and the parts of a tensor that ranks hold.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/collective/local_tensor.h>
#include <shardprop/execute/program_run.h>
#include <shardprop/placement/local_region.h>
#include <shardprop/reference/tensor.h>

#include <memory>

namespace shardprop::verification {

inline reference::Tensor as_reference(const LocalTensor& tensor) {
  return reference::Tensor::wrap(tensor.data(), tensor.sizes(),
                                 tensor.strides(), tensor.dtype(),
                                 tensor.owner());
}
inline LocalTensor as_local(const reference::Tensor& tensor) {
  return LocalTensor::wrap(tensor.data(), tensor.shape(), tensor.strides(),
                           tensor.dtype(), tensor.owner());
}

// Operators by the reference.
OperatorEvaluator reference_evaluator(std::shared_ptr<const OpLibrary> library);

// What a rank holds of a row-major tensor.
Result<LocalTensor> part_of(const LocalTensor& whole,
                            const LocalRegion& region);

}  // namespace shardprop::verification

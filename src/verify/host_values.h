// Converts between the tensors of collectives and of the reference, which share
// memory, and selects the parts of a tensor that ranks hold.
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

// Returns an evaluator that runs operators by the reference.
OperatorEvaluator reference_evaluator(std::shared_ptr<const OpLibrary> library);

// Returns the part of a row-major tensor that a rank holds.
Result<LocalTensor> part_of(const LocalTensor& whole,
                            const LocalRegion& region);

}  // namespace shardprop::verification

// Checks that source and target of a redistribution are the same tensor.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/placement/tensor_spec.h>

namespace shardprop::redistribute {

// Error: kRedistributeTensor.
inline Result<void> check_same_tensor(const TensorSpec& src,
                                      const TensorSpec& dst) {
  if (src.meta().shape() == dst.meta().shape() &&
      src.meta().dtype() == dst.meta().dtype()) {
    return {};
  }
  return fail(ErrorCode::kRedistributeTensor,
              "source is " + to_string(src.meta()) + ", target is " +
                  to_string(dst.meta()),
              "a redistribution keeps shape and dtype");
}

}  // namespace shardprop::redistribute

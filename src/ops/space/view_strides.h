// Strides of views, as PyTorch computes them.
#pragma once

#include <shardprop/placement/tensor_meta.h>

#include <cstdint>
#include <optional>

namespace shardprop {

// Returns the strides that view `self` as `shape` without a copy; nullopt if
// none do. Precondition: `shape` has as many elements as `self`.
std::optional<Dims> view_strides(const TensorMeta& self, const Dims& shape);

// Returns whether `result` can be `self` with flattened or split dims and the
// same order of elements. Both must have the same dtype, and `result` the
// strides of view_strides(). A dim of size 1 may have any stride.
//   f32[6,8], f32[48]          yes
//   f32[6,8]{1,6}, f32[48]     no: a copy
bool is_reshaped_view(const TensorMeta& self, const TensorMeta& result);

// Returns how many elements self[start:end:step] has along a dim of `size`.
// Throws CallError if step is not positive.
std::int64_t slice_length(std::int64_t size, std::optional<std::int64_t> start,
                          std::optional<std::int64_t> end, std::int64_t step);

}  // namespace shardprop

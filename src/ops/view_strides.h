// Strides of views, as PyTorch computes them.
#pragma once

#include <shardprop/placement/tensor_meta.h>

#include <cstdint>
#include <optional>

namespace shardprop {

// Strides with which `self` can be seen as `shape` without copying; nullopt
// when it cannot. Precondition: `shape` holds as many elements.
std::optional<Dims> view_strides(const TensorMeta& self, const Dims& shape);

// Whether `result` can be `self` itself, its elements in their order and its
// dims flattened or split: same dtype, and strides that view_strides() gives. A
// dim of size 1 may have any stride.
//   f32[6,8], f32[48]          yes
//   f32[6,8]{1,6}, f32[48]     no: a copy
bool is_reshaped_view(const TensorMeta& self, const TensorMeta& result);

// How many elements self[start:end:step] has of `size`; a ShapeError when step
// is not positive.
std::int64_t slice_length(std::int64_t size, std::optional<std::int64_t> start,
                          std::optional<std::int64_t> end, std::int64_t step);

}  // namespace shardprop

// Windows slid over a dim: convolution and pooling.
#pragma once

#include "ops/op_call.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace shardprop {

// One number per spatial dim, of a list that may hold one for all.
std::int64_t per_dim(const std::vector<std::int64_t>& list, std::size_t dim,
                     std::int64_t fallback);

// The list has one number, one for each of `dims`, or none if it may.
void require_per_dim(const std::vector<std::int64_t>& list, std::size_t dims,
                     std::string_view name, bool may_be_empty = false);

// How often a window fits.
std::int64_t window_count(std::int64_t size, std::int64_t kernel,
                          std::int64_t stride, std::int64_t padding,
                          std::int64_t dilation, bool round_up);

// The size whose windows a transposed convolution undoes.
std::int64_t transposed_size(std::int64_t size, std::int64_t kernel,
                             std::int64_t stride, std::int64_t padding,
                             std::int64_t dilation, std::int64_t extra);

// The size that `size`, the `dim`-th of `dims` spatial ones, is resampled to: by
// `output_size`, or by `scale_factors` where the overload has them.
std::int64_t upsampled_size(const OpCall& call, std::int64_t size,
                            std::size_t dim, std::size_t dims);

// Whether the channels of images or volumes lie innermost in memory.
bool is_channels_last(const TensorMeta& meta);
// Strides of what has the shape of `image`, in memory as kernels lay out images:
// channels last where `image` is, else in order.
Dims strides_like_image(const TensorMeta& image);
// The same of the operand `self`, whose gradient the result is.
Dims strides_like_self(const OpCall& call, const Dims& shape, DType dtype);
// Strides of a result: channels last where the first operand is.
Dims strides_as_images(const OpCall& call, const Dims& shape, DType dtype);

// 2 of "max_pool2d".
int spatial_dims(std::string_view name);

}  // namespace shardprop

// This header computes sizes and strides of convolution and pooling, whose
// windows slide over dims.
#pragma once

#include "ops/op_call.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace shardprop {

// Returns the number for spatial dim `dim`, from a list that may hold one
// number for all dims.
std::int64_t per_dim(const std::vector<std::int64_t>& list, std::size_t dim,
                     std::int64_t fallback);

// Requires one number for all dims or one for each of `dims`. The list may be
// empty if `may_be_empty`.
void require_per_dim(const std::vector<std::int64_t>& list, std::size_t dims,
                     std::string_view name, bool may_be_empty = false);

// Returns how many positions a window has.
std::int64_t window_count(std::int64_t size, std::int64_t kernel,
                          std::int64_t stride, std::int64_t padding,
                          std::int64_t dilation, bool round_up);

// Returns the output size of a transposed convolution along one dim.
std::int64_t transposed_size(std::int64_t size, std::int64_t kernel,
                             std::int64_t stride, std::int64_t padding,
                             std::int64_t dilation, std::int64_t extra);

// Returns the size to which `size`, the `dim`-th of `dims` spatial ones, is
// resampled. `output_size` gives it, or `scale_factors` if the overload has
// them.
std::int64_t upsampled_size(const OpCall& call, std::int64_t size,
                            std::size_t dim, std::size_t dims);

// Returns whether the channels of images or volumes are innermost in memory.
bool is_channels_last(const TensorMeta& meta);
// Returns strides for a tensor of the shape of `image`: channels last if
// `image` is, else contiguous.
Dims strides_like_image(const TensorMeta& image);
// Returns the same strides for the gradient of the operand `self`.
Dims strides_like_self(const OpCall& call, const Dims& shape, DType dtype);
// Returns the strides of a result: channels last if the first operand is.
Dims strides_as_images(const OpCall& call, const Dims& shape, DType dtype);

// 2 of "max_pool2d".
int spatial_dims(std::string_view name);

}  // namespace shardprop

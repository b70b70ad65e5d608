#pragma once

#include <cstddef>
#include <cstdint>

namespace shardprop::kernels::cpu {

// Moves `count` elements of `size` bytes, a power of two up to 16, one by one;
// strides in bytes. What gathers a strided row into a buffer, or scatters it.
void move_elements(std::byte* dst, std::int64_t dst_stride,
                   const std::byte* src, std::int64_t src_stride,
                   std::int64_t size, std::int64_t count);

}  // namespace shardprop::kernels::cpu

#pragma once

#include <cstddef>
#include <cstdint>

namespace shardprop::kernels::cpu {

// Moves `count` elements one by one, to gather a strided row into a buffer or
// to scatter it. `size` is a power of two up to 16 bytes; strides are in bytes.
void move_elements(std::byte* dst, std::int64_t dst_stride,
                   const std::byte* src, std::int64_t src_stride,
                   std::int64_t size, std::int64_t count);

}  // namespace shardprop::kernels::cpu

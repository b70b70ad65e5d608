#include "move_elements.h"

#include <cstring>

namespace shardprop::kernels::cpu {
namespace {

template <std::size_t kSize>
void move_sized(std::byte* dst, std::int64_t dst_stride, const std::byte* src,
                std::int64_t src_stride, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(dst + i * dst_stride, src + i * src_stride, kSize);
  }
}

}  // namespace

void move_elements(std::byte* dst, std::int64_t dst_stride,
                   const std::byte* src, std::int64_t src_stride,
                   std::int64_t size, std::int64_t count) {
  switch (size) {
    case 1:
      return move_sized<1>(dst, dst_stride, src, src_stride, count);
    case 2:
      return move_sized<2>(dst, dst_stride, src, src_stride, count);
    case 4:
      return move_sized<4>(dst, dst_stride, src, src_stride, count);
    case 8:
      return move_sized<8>(dst, dst_stride, src, src_stride, count);
    default:
      return move_sized<16>(dst, dst_stride, src, src_stride, count);
  }
}

}  // namespace shardprop::kernels::cpu

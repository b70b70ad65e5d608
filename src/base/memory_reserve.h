// MemoryReserve: memory kept back for saying that there is none.
//
//   MemoryReserve reserve;
//   try { work(); } catch (const std::bad_alloc&) {
//     reserve.release();          // from here on an Error can be made
//     ...
//   }
//
// Nothing is written to it, so that it costs addresses and no pages. What it
// gives back others may take: it makes a way out likely, not certain.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>

namespace shardprop {

class MemoryReserve {
 public:
  // As much as a thousand ranks need to say how they ended.
  static constexpr std::size_t kBytes = std::size_t{8} << 20;

  // Without memory there is nothing to keep back.
  MemoryReserve() noexcept : kept_(std::malloc(kBytes)) {}
  ~MemoryReserve() { release(); }
  MemoryReserve(const MemoryReserve&) = delete;
  MemoryReserve& operator=(const MemoryReserve&) = delete;

  // Any thread may call it; the first call gives the memory back.
  void release() noexcept { std::free(kept_.exchange(nullptr)); }

 private:
  std::atomic<void*> kept_;
};

}  // namespace shardprop

// `BlockCache` keeps device memory allocated after its last view is gone, for
// the next allocations of the same queue.
//
// CUDA frees memory only when no kernel runs on the device, and a kernel that
// waits for a dead rank runs until its communicator is aborted. A thread that
// drops a tensor would wait with it and never reach the abort. A dropped block
// therefore returns to the cache without any call to the device. Work that is
// still queued on the block is harmless: the next owner's work is queued after
// it, on the same stream.
//
// Blocks are returned to the device when the cache is closed, and when the
// device has no memory left and the queue is idle.
#pragma once

#include <shardprop/base/result.h>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

namespace shardprop::collective {

class BlockCache : public std::enable_shared_from_this<BlockCache> {
 public:
  // The functions of the device.
  struct Source {
    // Error: kOutOfMemory.
    std::function<Result<void*>(std::size_t bytes)> allocate;
    std::function<void(void*)> free;
    // True if all work queued so far is done; may wait for it a little.
    std::function<bool()> idle;
  };

  explicit BlockCache(Source source) : source_(std::move(source)) {}
  ~BlockCache() { close(); }
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // Returns a block of at least this many bytes. The block returns to the cache
  // when its last owner is gone, on any thread. Error: kOutOfMemory.
  Result<std::shared_ptr<void>> take(std::size_t bytes);
  // Frees all blocks; a block that returns later is freed at once.
  // Precondition: of the functions of `Source`, only `free` may be called from
  // now on.
  void close();

  std::size_t cached_bytes() const;

 private:
  void put(void* block, std::size_t bytes) noexcept;
  // Removes a block that fits from the cache and returns it; null if there is
  // none.
  void* find(std::size_t bytes, std::size_t& size);
  void free_all();

  Source source_;
  mutable std::mutex mutex_;
  std::multimap<std::size_t, void*> blocks_;  // by their size
  std::size_t cached_bytes_ = 0;
  bool closed_ = false;
};

}  // namespace shardprop::collective

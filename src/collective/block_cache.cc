#include "collective/block_cache.h"

#include "base/try.h"

#include <new>
#include <utility>

namespace shardprop::collective {
namespace {

// CUDA allocates large blocks in pages of 2 MiB and takes small ones from them.
constexpr std::size_t kPageBytes = std::size_t{2} << 20;
constexpr std::size_t kSmallestBlockBytes = 512;
// A larger block serves a request if at most an eighth of it remains unused.
constexpr std::size_t kLargestWaste = 8;

std::size_t block_bytes(std::size_t bytes) {
  const std::size_t unit =
      bytes < kPageBytes / 2 ? kSmallestBlockBytes : kPageBytes;
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

Result<std::shared_ptr<void>> BlockCache::take(std::size_t bytes) {
  std::size_t size = block_bytes(bytes);
  void* block = find(bytes, size);
  if (block == nullptr) {
    Result<void*> made = source_.allocate(size);
    if (!made && cached_bytes() > 0 && source_.idle()) {
      free_all();
      made = source_.allocate(size);
    }
    SP_ASSIGN(block, std::move(made));
  }
  // The deleter also runs if the shared_ptr cannot allocate its control block.
  return std::shared_ptr<void>(
      block, [cache = shared_from_this(), size](void* dropped) {
        cache->put(dropped, size);
      });
}

void* BlockCache::find(std::size_t bytes, std::size_t& size) {
  const std::lock_guard lock(mutex_);
  const std::size_t wanted = block_bytes(bytes);
  const auto found = blocks_.lower_bound(wanted);
  if (found == blocks_.end() ||
      found->first > wanted + wanted / kLargestWaste) {
    return nullptr;
  }
  size = found->first;
  void* const block = found->second;
  cached_bytes_ -= size;
  blocks_.erase(found);
  return block;
}

void BlockCache::put(void* block, std::size_t bytes) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (!closed_) {
      try {
        blocks_.emplace(bytes, block);
        cached_bytes_ += bytes;
        return;
      } catch (const std::bad_alloc&) {
        // Without host memory for the list, the block is freed.
      }
    }
  }
  source_.free(block);
}

void BlockCache::free_all() {
  std::multimap<std::size_t, void*> blocks;
  {
    const std::lock_guard lock(mutex_);
    blocks.swap(blocks_);
    cached_bytes_ = 0;
  }
  for (const auto& [bytes, block] : blocks) source_.free(block);
}

void BlockCache::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  free_all();
}

std::size_t BlockCache::cached_bytes() const {
  const std::lock_guard lock(mutex_);
  return cached_bytes_;
}

}  // namespace shardprop::collective

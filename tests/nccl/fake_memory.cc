#include "nccl/fake_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <mutex>

namespace shardprop::testing {
namespace {

struct FakeBlock {
  std::byte* device = nullptr;
  std::size_t bytes = 0;
};

struct FakeBlocks {
  std::mutex mutex;
  std::map<std::uintptr_t, FakeBlock> by_address;
};

FakeBlocks& fake_blocks() {
  static FakeBlocks all;
  return all;
}

}  // namespace

void* device_block(std::size_t bytes) {
  const int file = memfd_create("fake device", 0);
  if (file < 0) return nullptr;
  void* host = MAP_FAILED;
  void* device = MAP_FAILED;
  if (ftruncate(file, static_cast<off_t>(bytes)) == 0) {
    host = mmap(nullptr, bytes, PROT_NONE, MAP_SHARED, file, 0);
    device = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  close(file);
  if (host == MAP_FAILED || device == MAP_FAILED) return nullptr;
  FakeBlocks& blocks = fake_blocks();
  const std::lock_guard lock(blocks.mutex);
  blocks.by_address[reinterpret_cast<std::uintptr_t>(host)] = {
      static_cast<std::byte*>(device), bytes};
  return host;
}

std::size_t device_block_bytes(const void* block) {
  FakeBlocks& blocks = fake_blocks();
  const std::lock_guard lock(blocks.mutex);
  return blocks.by_address.at(reinterpret_cast<std::uintptr_t>(block)).bytes;
}

void free_device_block(void* block) {
  FakeBlocks& blocks = fake_blocks();
  const std::lock_guard lock(blocks.mutex);
  const auto found =
      blocks.by_address.find(reinterpret_cast<std::uintptr_t>(block));
  munmap(found->second.device, found->second.bytes);
  munmap(block, found->second.bytes);
  blocks.by_address.erase(found);
}

void* on_device(const void* address) {
  FakeBlocks& blocks = fake_blocks();
  const std::lock_guard lock(blocks.mutex);
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  auto found = blocks.by_address.upper_bound(at);
  if (found == blocks.by_address.begin()) return const_cast<void*>(address);
  --found;
  const std::uintptr_t offset = at - found->first;
  if (offset >= found->second.bytes) return const_cast<void*>(address);
  return found->second.device + offset;
}

}  // namespace shardprop::testing

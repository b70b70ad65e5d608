#include "c/handle_table.h"

#include <cstring>
#include <new>
#include <utility>

namespace shardprop::c {
namespace {

static_assert(sizeof(void*) == sizeof(std::uint64_t),
              "a handle holds a place and a generation");

// Place in the lower half, generation in the upper one, which is never 0. Odd
// places: no handle looks like an aligned address.
constexpr int kHalf = 32;
constexpr std::uint64_t kLower = 0xffffffffU;

void* handle_of(std::uint64_t place, std::uint64_t generation) {
  return reinterpret_cast<void*>(  // NOLINT: not an address
      static_cast<std::uintptr_t>(generation << kHalf | (place << 1 | 1)));
}
std::uint64_t word_of(const void* handle) {
  return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(handle));
}
std::uint64_t state_of(std::uint64_t generation, HandleType type) {
  return generation << 8 | static_cast<std::uint64_t>(type);
}

}  // namespace

HandleTable& HandleTable::instance() {
  // Never destroyed: handles may be freed by destructors that run at exit.
  static auto* table = new HandleTable;
  return *table;
}

HandleTable::Slot* HandleTable::slot_of(std::uint64_t place) const {
  if (place / kBlock >= kMostBlocks) return nullptr;
  Block* block = blocks_[place / kBlock].load(std::memory_order_acquire);
  return block == nullptr ? nullptr : &(*block)[place % kBlock];
}

void* HandleTable::add(HandleType type, std::shared_ptr<void> object) {
  const std::scoped_lock lock(mutex_);
  if (free_.empty()) {
    const std::size_t block = places_ / kBlock;
    if (block >= kMostBlocks) throw std::bad_alloc();
    if (blocks_[block].load(std::memory_order_relaxed) == nullptr) {
      blocks_[block].store(new Block, std::memory_order_release);
    }
    // Room for every place to be freed, so that remove() cannot fail.
    free_.reserve(places_ + 1);
    free_.push_back(places_++);
  }
  const std::uint64_t place = free_.back();
  free_.pop_back();
  Slot& slot = *slot_of(place);
  std::uint64_t generation =
      ((slot.state.load(std::memory_order_relaxed) >> 8) + 1) & kLower;
  if (generation == 0) generation = 1;
  slot.object = std::move(object);
  slot.state.store(state_of(generation, type), std::memory_order_release);
  return handle_of(place, generation);
}

HandleTable::Slot* HandleTable::good(HandleType type,
                                     const void* handle) const {
  const std::uint64_t word = word_of(handle);
  if ((word & 1) == 0) return nullptr;
  Slot* slot = slot_of((word & kLower) >> 1);
  if (slot == nullptr || slot->state.load(std::memory_order_acquire) !=
                             state_of(word >> kHalf, type)) {
    return nullptr;
  }
  return slot;
}

void* HandleTable::find(HandleType type, const void* handle) const {
  Slot* slot = good(type, handle);
  return slot == nullptr ? nullptr : slot->object.get();
}

std::shared_ptr<void> HandleTable::share(HandleType type,
                                         const void* handle) const {
  Slot* slot = good(type, handle);
  return slot == nullptr ? nullptr : slot->object;
}

std::shared_ptr<void> HandleTable::remove(HandleType type, const void* handle) {
  const std::scoped_lock lock(mutex_);
  Slot* slot = good(type, handle);
  if (slot == nullptr) return nullptr;
  const std::uint64_t word = word_of(handle);
  slot->state.store(state_of(word >> kHalf, HandleType::kFree),
                    std::memory_order_release);
  free_.push_back((word & kLower) >> 1);
  return std::exchange(slot->object, nullptr);
}

std::size_t HandleTable::size() const {
  const std::scoped_lock lock(mutex_);
  return places_ - free_.size();
}

}  // namespace shardprop::c

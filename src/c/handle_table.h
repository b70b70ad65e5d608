// `HandleTable` holds the objects of the handles of the C API. A handle is no
// address: it is a place, and the number of times that this place was used
// before. So the table recognises a handle that is null, freed, of another type
// or made up, and reads no freed memory.
//
// A lookup takes no lock. Objects are shared, so a handle keeps the objects alive
// that it needs.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace shardprop::c {

enum class HandleType : std::uint8_t {
  kFree,
  kError,
  kMesh,
  kTopology,
  kSpec,
  kLibrary,
  kCall,
  kPropagator,
  kCache,
  kSharding,
  kRedistribution,
  kGraph,
  kOptions,
  kStop,
  kPlan,
};

class HandleTable {
 public:
  // The one of the process: handles carry no context.
  static HandleTable& instance();

  // May throw std::bad_alloc, and then holds nothing of it.
  void* add(HandleType type, std::shared_ptr<void> object);
  // Null where the handle is not one of that type.
  void* find(HandleType type, const void* handle) const;
  std::shared_ptr<void> share(HandleType type, const void* handle) const;
  // What it stood for; null as find().
  std::shared_ptr<void> remove(HandleType type, const void* handle);
  std::size_t size() const;

 private:
  static constexpr std::size_t kBlock = 1024;
  static constexpr std::size_t kMostBlocks = std::size_t{1} << 16;

  struct Slot {
    // Generation above type; changed last by add() and first by remove().
    std::atomic<std::uint64_t> state{0};
    std::shared_ptr<void> object;
  };
  using Block = std::array<Slot, kBlock>;

  Slot* slot_of(std::uint64_t place) const;
  Slot* good(HandleType type, const void* handle) const;

  std::unique_ptr<std::atomic<Block*>[]> blocks_{
      new std::atomic<Block*>[kMostBlocks]()};
  mutable std::mutex mutex_;
  std::size_t places_ = 0;
  std::vector<std::uint64_t> free_;
};

}  // namespace shardprop::c

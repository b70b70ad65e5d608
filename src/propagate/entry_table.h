// EntryTable stores answers by key in sets of a few ways. find() takes no lock:
// entries never change, and an entry that a reader may be using is not freed
// (hazard pointers). All other functions need the caller's lock.
//
// Each reader announces the one entry it looks at, and keeps it announced until
// its next look. An evicted entry is freed when no reader announces it. So at
// most one entry per reader outlives its eviction.
#pragma once

#include "propagate/call_key.h"

#include <shardprop/propagate/output_sharding.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace shardprop {

struct SharedShapes;

struct Entry {
  Entry(CallKey the_key, std::shared_ptr<const OutputSharding> the_sharding,
        std::shared_ptr<const SharedShapes> the_shapes);

  CallKey key;
  std::shared_ptr<const OutputSharding> sharding;
  // The sizes that the answer holds for; null if it holds for its own sizes
  // only.
  std::shared_ptr<const SharedShapes> shapes;
  std::size_t bytes = 0;
  // The number of clock rounds that the entry survives without a hit.
  mutable std::atomic<std::uint8_t> lives{0};
};

// ReaderSlot is the announcement of one reader and the reader's counts. It has
// a cache line of its own.
struct alignas(128) ReaderSlot {
  std::atomic<const Entry*> looks_at{nullptr};
  std::atomic<bool> taken{false};
  std::atomic<std::uint64_t> hits{0};
  std::atomic<std::uint64_t> shared_hits{0};
  ReaderSlot* next = nullptr;  // set before the slot is published

  // Only the reader itself increments its counters.
  static void count(std::atomic<std::uint64_t>& counter) {
    counter.store(counter.load(std::memory_order_relaxed) + 1,
                  std::memory_order_relaxed);
  }
};

// ReaderSlots owns all slots and reuses the slots that readers have released.
class ReaderSlots {
 public:
  ReaderSlots() = default;
  ~ReaderSlots();
  ReaderSlots(const ReaderSlots&) = delete;
  ReaderSlots& operator=(const ReaderSlots&) = delete;

  // take() needs no lock. It may throw std::bad_alloc.
  ReaderSlot& take();
  static void give_back(ReaderSlot& slot);

  bool is_looked_at(const Entry* entry) const;
  template <class Visit>
  void each(const Visit& visit) const {
    for (const ReaderSlot* slot = first_.load(std::memory_order_seq_cst);
         slot != nullptr; slot = slot->next) {
      visit(*slot);
    }
  }

 private:
  std::atomic<ReaderSlot*> first_{nullptr};
};

class EntryTable {
 public:
  static constexpr std::uint8_t kMostLives = 2;

  // Allocates all sets. May throw std::bad_alloc.
  EntryTable(std::size_t most_entries, std::size_t most_bytes);
  ~EntryTable();
  EntryTable(const EntryTable&) = delete;
  EntryTable& operator=(const EntryTable&) = delete;

  // Returns the entry with these words, or null. The entry stays valid while
  // `slot` announces it.
  const Entry* find(std::uint64_t hash, std::span<const std::uint64_t> words,
                    ReaderSlot& slot) const;

  // --- These functions need the caller's lock. ---

  // Inserts the entry and evicts others if necessary. An existing entry with
  // the same key stays. Returns false if the entry alone is too large.
  bool insert(std::unique_ptr<const Entry> entry, const ReaderSlots& slots);
  void clear(const ReaderSlots& slots);
  std::uint64_t evictions() const { return evictions_; }
  std::size_t entries() const { return entries_; }
  std::size_t bytes() const { return bytes_; }

 private:
  static constexpr std::size_t kWays = 16;

  struct alignas(64) Set {
    std::array<std::atomic<std::uint32_t>, kWays> tags{};
    std::array<std::atomic<const Entry*>, kWays> entries{};
    std::size_t hand = 0;
  };

  std::size_t set_of(std::uint64_t hash) const {
    return static_cast<std::size_t>((hash >> 32) * sets_.size() >> 32);
  }
  static std::uint32_t tag_of(std::uint64_t hash) {
    return static_cast<std::uint32_t>(hash) | 1U;  // 0: empty
  }
  // Which entries an eviction keeps: recently used entries, or no entry.
  enum class Spare : std::uint8_t { kUsed, kNone };

  // Reduces the lives of the entry by one; returns true if it had none left.
  bool is_expendable(const Entry& entry) const;
  // A way of the set that is free, or is freed after at most
  // ways_ * kMostLives + 1 visits, however often readers hit the entries.
  std::size_t free_way(Set& set);
  bool evict_one(Set& set, Spare spare);
  // Evicts until `bytes` more fit, after a bounded number of visits.
  // Precondition: bytes <= most_bytes_.
  void make_room(std::size_t bytes);
  void remove(Set& set, std::size_t way);
  void free_retired(const ReaderSlots& slots);

  std::size_t ways_;
  std::size_t most_bytes_;
  std::vector<Set> sets_;
  std::size_t sweep_ = 0;
  std::size_t entries_ = 0;
  std::size_t bytes_ = 0;
  std::uint64_t evictions_ = 0;
  std::vector<std::unique_ptr<const Entry>> retired_;
};

}  // namespace shardprop

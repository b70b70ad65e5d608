#include "propagate/entry_table.h"

#include "propagate/shared_shapes.h"

#include <algorithm>
#include <utility>

namespace shardprop {
namespace {

std::size_t bytes_of(const OutputSharding& sharding) {
  std::size_t bytes = sizeof(OutputSharding);
  bytes += (sharding.inputs.capacity() + sharding.outputs.capacity()) *
           sizeof(TensorSpec);
  bytes += sharding.output_slots.capacity() * sizeof(std::int32_t);
  bytes += sharding.moves.capacity() * sizeof(InputMove);
  bytes += sharding.assignments.capacity() * sizeof(Assignment);
  bytes += sharding.shardings.capacity() * sizeof(FactorShardings);
  for (const InputMove& move : sharding.moves) {
    bytes += sizeof(RedistributePlan) +
             move.plan->steps.capacity() * sizeof(RedistributeStep);
  }
  bytes += sharding.inside.capacity() * sizeof(CollectiveStep);
  // A rank argument owns a layout and a list of mesh dims.
  bytes += sharding.rank_arguments.capacity() *
           (sizeof(RankArgument) + 2 * sizeof(Layout));
  return bytes;
}

// Bytes that the allocator and the shared pointers add to an entry.
constexpr std::size_t kEntryOverheadBytes = 128;

// Every entry takes at least these bytes, so that most_bytes bounds the sets.
constexpr std::size_t kLeastEntryBytes =
    sizeof(Entry) + kEntryOverheadBytes + sizeof(OutputSharding);

// 4 million entries, whose sets take 64 MiB. A table is allocated at once, and
// a larger request must not exhaust the machine's memory.
constexpr std::size_t kMostSets = std::size_t{1} << 18;

std::size_t set_count(std::size_t most_entries, std::size_t most_bytes,
                      std::size_t ways) {
  const std::size_t entries =
      std::min(most_entries, most_bytes / kLeastEntryBytes);
  return std::clamp<std::size_t>(entries / ways, 1, kMostSets);
}

}  // namespace

Entry::Entry(CallKey the_key,
             std::shared_ptr<const OutputSharding> the_sharding,
             std::shared_ptr<const SharedShapes> the_shapes)
    : key(std::move(the_key)),
      sharding(std::move(the_sharding)),
      shapes(std::move(the_shapes)) {
  bytes = sizeof(Entry) + kEntryOverheadBytes +
          key.words.capacity() * sizeof(std::uint64_t) + bytes_of(*sharding) +
          (shapes ? sizeof(SharedShapes) : 0);
}

ReaderSlots::~ReaderSlots() {
  ReaderSlot* slot = first_.load(std::memory_order_acquire);
  while (slot != nullptr) delete std::exchange(slot, slot->next);
}

ReaderSlot& ReaderSlots::take() {
  for (ReaderSlot* slot = first_.load(std::memory_order_acquire);
       slot != nullptr; slot = slot->next) {
    if (!slot->taken.load(std::memory_order_relaxed) &&
        !slot->taken.exchange(true, std::memory_order_acquire)) {
      return *slot;
    }
  }
  auto* made = new ReaderSlot;
  made->taken.store(true, std::memory_order_relaxed);
  made->next = first_.load(std::memory_order_relaxed);
  // Sequentially consistent, as each() is: who removes an entry and then visits
  // the slots sees every slot whose reader found the entry before.
  while (!first_.compare_exchange_weak(
      made->next, made, std::memory_order_seq_cst, std::memory_order_relaxed)) {
  }
  return *made;
}

void ReaderSlots::give_back(ReaderSlot& slot) {
  slot.looks_at.store(nullptr, std::memory_order_release);
  slot.taken.store(false, std::memory_order_release);
}

bool ReaderSlots::is_looked_at(const Entry* entry) const {
  bool found = false;
  each([&](const ReaderSlot& slot) {
    found = found || slot.looks_at.load(std::memory_order_seq_cst) == entry;
  });
  return found;
}

EntryTable::EntryTable(std::size_t most_entries, std::size_t most_bytes)
    : ways_(std::min(kWays, most_entries)),
      most_bytes_(most_bytes),
      sets_(set_count(most_entries, most_bytes, kWays)) {}

EntryTable::~EntryTable() {
  for (Set& set : sets_) {
    for (auto& entry : set.entries) {
      delete entry.load(std::memory_order_relaxed);
    }
  }
}

const Entry* EntryTable::find(std::uint64_t hash,
                              std::span<const std::uint64_t> words,
                              ReaderSlot& slot) const {
  const Set& set = sets_[set_of(hash)];
  const std::uint32_t tag = tag_of(hash);
  for (std::size_t way = 0; way < ways_; ++way) {
    if (set.tags[way].load(std::memory_order_relaxed) != tag) continue;
    const Entry* entry = set.entries[way].load(std::memory_order_seq_cst);
    if (entry == nullptr) continue;
    // The reader announces the entry, then looks for it again. An entry that is
    // still there was not freed before the announcement and is not freed after
    // it. The entry that this reader announced last needs no second look.
    if (slot.looks_at.load(std::memory_order_relaxed) != entry) {
      slot.looks_at.store(entry, std::memory_order_seq_cst);
      if (set.entries[way].load(std::memory_order_seq_cst) != entry) continue;
    }
    if (entry->key.hash != hash ||
        !std::equal(words.begin(), words.end(), entry->key.words.begin(),
                    entry->key.words.end())) {
      continue;
    }
    // The entry is written rarely, so that its readers share its cache line.
    if (entry->lives.load(std::memory_order_relaxed) != kMostLives) {
      entry->lives.store(kMostLives, std::memory_order_relaxed);
    }
    return entry;
  }
  return nullptr;
}

bool EntryTable::is_expendable(const Entry& entry) const {
  const std::uint8_t lives = entry.lives.load(std::memory_order_relaxed);
  if (lives == 0) return true;
  entry.lives.store(static_cast<std::uint8_t>(lives - 1),
                    std::memory_order_relaxed);
  return false;
}

void EntryTable::remove(Set& set, std::size_t way) {
  const Entry* entry = set.entries[way].load(std::memory_order_relaxed);
  retired_.emplace_back();  // may throw, before anything changed
  set.tags[way].store(0, std::memory_order_relaxed);
  set.entries[way].store(nullptr, std::memory_order_seq_cst);
  retired_.back().reset(entry);
  bytes_ -= entry->bytes;
  --entries_;
}

std::size_t EntryTable::free_way(Set& set) {
  for (std::size_t way = 0; way < ways_; ++way) {
    if (set.entries[way].load(std::memory_order_relaxed) == nullptr) return way;
  }
  for (std::size_t visit = 0;; ++visit) {
    const std::size_t way = set.hand;
    set.hand = (set.hand + 1) % ways_;
    // Readers that hit the entries meanwhile raise their lives again.
    const bool is_last_visit = visit == ways_ * kMostLives;
    if (!is_expendable(*set.entries[way].load(std::memory_order_relaxed)) &&
        !is_last_visit) {
      continue;
    }
    remove(set, way);
    ++evictions_;
    return way;
  }
}

bool EntryTable::evict_one(Set& set, Spare spare) {
  for (std::size_t i = 0; i < ways_; ++i) {
    const std::size_t way = set.hand;
    set.hand = (set.hand + 1) % ways_;
    const Entry* entry = set.entries[way].load(std::memory_order_relaxed);
    if (entry == nullptr) continue;
    if (!is_expendable(*entry) && spare == Spare::kUsed) continue;
    remove(set, way);
    ++evictions_;
    return true;
  }
  return false;
}

void EntryTable::make_room(std::size_t bytes) {
  // After kMostLives sweeps over all sets, every entry that no reader hit
  // meanwhile is evicted. The other entries are evicted next, at most ways_ per
  // set.
  const std::size_t sparing = sets_.size() * kMostLives;
  for (std::size_t visit = 0; bytes_ + bytes > most_bytes_; ++visit) {
    evict_one(sets_[sweep_], visit < sparing ? Spare::kUsed : Spare::kNone);
    sweep_ = (sweep_ + 1) % sets_.size();
  }
}

bool EntryTable::insert(std::unique_ptr<const Entry> entry,
                        const ReaderSlots& slots) {
  if (ways_ == 0 || entry->bytes > most_bytes_) return false;
  Set& set = sets_[set_of(entry->key.hash)];
  for (std::size_t way = 0; way < ways_; ++way) {
    const Entry* held = set.entries[way].load(std::memory_order_relaxed);
    if (held != nullptr && held->key == entry->key) return true;
  }
  make_room(entry->bytes);
  const std::size_t way = free_way(set);
  bytes_ += entry->bytes;
  ++entries_;
  set.tags[way].store(tag_of(entry->key.hash), std::memory_order_relaxed);
  set.entries[way].store(entry.release(), std::memory_order_release);
  free_retired(slots);
  return true;
}

void EntryTable::clear(const ReaderSlots& slots) {
  for (Set& set : sets_) {
    for (std::size_t way = 0; way < ways_; ++way) {
      if (set.entries[way].load(std::memory_order_relaxed) != nullptr) {
        remove(set, way);
      }
    }
  }
  free_retired(slots);
}

void EntryTable::free_retired(const ReaderSlots& slots) {
  std::erase_if(retired_, [&](const std::unique_ptr<const Entry>& entry) {
    return !slots.is_looked_at(entry.get());
  });
}

}  // namespace shardprop

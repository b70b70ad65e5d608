#include "propagate/entry_table.h"

#include "propagate/fixtures.h"

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::shared_library;

// An entry whose key is one word. All of them are in one set of a table of at
// most 16 entries.
std::unique_ptr<const Entry> one_word_entry(std::uint64_t word,
                                            std::size_t more_bytes = 0) {
  KeyBuffer key;
  key.push(word);
  auto entry = std::make_unique<Entry>(
      kept(key, shared_library()->find("aten.mm.default")),
      std::make_shared<const OutputSharding>(), nullptr);
  entry->bytes += more_bytes;
  return entry;
}

const Entry* find_word(const EntryTable& table, std::uint64_t word,
                       ReaderSlot& slot) {
  KeyBuffer key;
  key.push(word);
  return table.find(key.hash(), key.words(), slot);
}

// Readers that look at some entries, so that none of these is freed.
class Lookers {
 public:
  ~Lookers() {
    for (ReaderSlot* reader : readers_) ReaderSlots::give_back(*reader);
  }
  void look_at(const Entry* entry, ReaderSlots& slots) {
    readers_.push_back(&slots.take());
    readers_.back()->looks_at = entry;
  }

 private:
  std::vector<ReaderSlot*> readers_;
};

// A reader that hits an entry while an insertion visits it raises its lives
// again. 255 lives stand for a reader that does so at every visit.
std::vector<const Entry*> fill_with_used(EntryTable& table, std::uint64_t count,
                                         ReaderSlots& slots, Lookers& lookers,
                                         std::size_t more_bytes = 0) {
  std::vector<const Entry*> entries;
  for (std::uint64_t word = 0; word < count; ++word) {
    auto entry = one_word_entry(word, more_bytes);
    entry->lives = 255;
    lookers.look_at(entry.get(), slots);
    entries.push_back(entry.get());
    REQUIRE(table.insert(std::move(entry), slots));
  }
  REQUIRE(table.entries() == count);
  return entries;
}

TEST_CASE("an insertion visits a full set a bounded number of times") {
  ReaderSlots slots;
  Lookers lookers;
  EntryTable table(16, std::size_t{1} << 20);
  const auto entries = fill_with_used(table, 16, slots, lookers);
  CHECK(table.insert(one_word_entry(100), slots));
  CHECK(table.evictions() == 1);
  for (const Entry* entry : entries) {
    CHECK(entry->lives >= 255 - EntryTable::kMostLives - 1);
  }
}

TEST_CASE("room for bytes is made in a bounded number of visits") {
  ReaderSlots slots;
  Lookers lookers;
  // Entries so large that bytes run out long before the ways of a set do.
  constexpr std::size_t kMore = std::size_t{1} << 20;
  const std::size_t entry_bytes = one_word_entry(0, kMore)->bytes;
  EntryTable table(1024, 64 * entry_bytes);
  const auto entries = fill_with_used(table, 64, slots, lookers, kMore);
  CHECK(table.insert(one_word_entry(1000, kMore), slots));
  CHECK(table.bytes() <= 64 * entry_bytes);
  CHECK(table.evictions() == 1);
  for (const Entry* entry : entries) {
    CHECK(entry->lives >= 255 - EntryTable::kMostLives - 1);
  }
}

TEST_CASE("a table of any size is bounded by its bytes") {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  ReaderSlots slots;
  ReaderSlot& slot = slots.take();
  EntryTable table(kMost, kMost);
  CHECK(table.insert(one_word_entry(1), slots));
  CHECK(find_word(table, 1, slot) != nullptr);
  CHECK(find_word(table, 2, slot) == nullptr);
  ReaderSlots::give_back(slot);
}

TEST_CASE("entries are evicted beside threads that hit them all the time") {
  constexpr std::uint64_t kEntries = 16;
  constexpr std::uint64_t kInsertions = 3000;
  ReaderSlots slots;
  EntryTable table(kEntries, std::size_t{1} << 20);
  for (std::uint64_t word = 0; word < kEntries; ++word) {
    REQUIRE(table.insert(one_word_entry(word), slots));
  }
  std::atomic<std::uint64_t> inserted{kEntries};
  std::atomic<int> wrong{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t) {
    readers.emplace_back([&] {
      ReaderSlot& slot = slots.take();
      while (inserted < kInsertions) {
        const std::uint64_t last = inserted;
        for (std::uint64_t word = last - kEntries; word < last; ++word) {
          const Entry* entry = find_word(table, word, slot);
          if (entry != nullptr && entry->key.words.at(0) != word) ++wrong;
        }
      }
      ReaderSlots::give_back(slot);
    });
  }
  for (; inserted < kInsertions; ++inserted) {
    if (!table.insert(one_word_entry(inserted), slots)) ++wrong;
  }
  for (std::thread& reader : readers) reader.join();
  CHECK(wrong == 0);
  CHECK(table.entries() == kEntries);
}

}  // namespace
}  // namespace shardprop

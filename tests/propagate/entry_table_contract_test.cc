// The contract of EntryTable and ReaderSlots: which entries are found or evicted,
// and when an evicted entry is freed.
#include "propagate/entry_table.h"

#include "propagate/fixtures.h"
#include "support/property.h"
#include "support/sanitizers.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::shared_library;

constexpr std::size_t kAmpleBytes = std::size_t{1} << 24;

// Keys of two words: the second is the number that the answer states too.
KeyBuffer& write_numbered(KeyBuffer& key, std::uint64_t number) {
  key.push(number ^ 0x5eedULL);
  key.push(number);
  return key;
}

struct Numbered {
  std::unique_ptr<Entry> entry;
  std::weak_ptr<const OutputSharding> answer;  // expired: the entry was freed
  const Entry* address = nullptr;
};

Numbered numbered(std::uint64_t number) {
  KeyBuffer key;
  write_numbered(key, number);
  auto answer = std::make_shared<OutputSharding>();
  answer->redistribute_nanoseconds = static_cast<std::int64_t>(number);
  Numbered out;
  out.answer = answer;
  out.entry = std::make_unique<Entry>(
      kept(key, shared_library()->find("aten.mm.default")), std::move(answer),
      nullptr);
  out.address = out.entry.get();
  return out;
}

const Entry* find_number(const EntryTable& table, std::uint64_t number,
                         ReaderSlot& slot) {
  KeyBuffer key;
  write_numbered(key, number);
  return table.find(key.hash(), key.words(), slot);
}

std::int64_t stated(const Entry& entry) {
  return entry.sharding->redistribute_nanoseconds;
}

TEST_CASE("find() returns the entry of exactly these words") {
  ReaderSlots slots;
  ReaderSlot& slot = slots.take();
  EntryTable table(64, kAmpleBytes);
  CHECK(find_number(table, 7, slot) == nullptr);
  CHECK(table.insert(numbered(7).entry, slots));
  REQUIRE(find_number(table, 7, slot) != nullptr);
  CHECK(stated(*find_number(table, 7, slot)) == 7);
  CHECK(find_number(table, 8, slot) == nullptr);
  // Other words with the same hash are another key.
  KeyBuffer key;
  write_numbered(key, 7);
  KeyBuffer longer;
  write_numbered(longer, 7).push(0);
  CHECK(table.find(key.hash(), longer.words(), slot) == nullptr);
  CHECK(table.find(key.hash(), key.words().first(1), slot) == nullptr);
  ReaderSlots::give_back(slot);
}

TEST_CASE("an entry whose key is known is dropped, and the first one stays") {
  ReaderSlots slots;
  ReaderSlot& slot = slots.take();
  EntryTable table(64, kAmpleBytes);
  Numbered first = numbered(7);
  Numbered second = numbered(7);
  CHECK(table.insert(std::move(first.entry), slots));
  CHECK(table.insert(std::move(second.entry), slots));
  CHECK(table.entries() == 1);
  CHECK(find_number(table, 7, slot) == first.address);
  CHECK(second.answer.expired());
  ReaderSlots::give_back(slot);
}

TEST_CASE("an entry larger than the table is refused and evicts none") {
  ReaderSlots slots;
  ReaderSlot& slot = slots.take();
  const std::size_t bytes = numbered(0).address->bytes;
  EntryTable table(64, 2 * bytes);
  CHECK(table.insert(numbered(1).entry, slots));
  auto large = numbered(2);
  large.entry->bytes = 2 * bytes + 1;
  CHECK(!table.insert(std::move(large.entry), slots));
  CHECK(table.evictions() == 0);
  CHECK(find_number(table, 1, slot) != nullptr);
  EntryTable none(0, kAmpleBytes);
  CHECK(!none.insert(numbered(1).entry, slots));
  CHECK(find_number(none, 1, slot) == nullptr);
  ReaderSlots::give_back(slot);
}

TEST_CASE("entries() and bytes() count the stored entries") {
  ReaderSlots slots;
  std::mt19937 random(1);
  const std::size_t bytes = numbered(0).address->bytes;
  EntryTable table(48, 40 * bytes);
  std::uint64_t inserted = 0;
  for (int n = 0; n < 2'000; ++n) {
    const std::size_t before = table.entries();
    const std::uint64_t evicted_before = table.evictions();
    CHECK(table.insert(numbered(random() % 200).entry, slots));
    const std::size_t evicted = table.evictions() - evicted_before;
    CHECK(table.entries() + evicted - before <= 1);
    inserted += table.entries() + evicted - before;
    CHECK(table.bytes() == table.entries() * bytes);
    CHECK(table.bytes() <= 40 * bytes);
  }
  CHECK(table.evictions() > 100);
  CHECK(inserted == table.entries() + table.evictions());
  table.clear(slots);
  CHECK(table.entries() == 0);
  CHECK(table.bytes() == 0);
}

TEST_CASE("an evicted entry is freed when no reader announces it") {
  ReaderSlots slots;
  ReaderSlot& slot = slots.take();
  EntryTable table(64, kAmpleBytes);
  Numbered one = numbered(1);
  Numbered two = numbered(2);
  table.insert(std::move(one.entry), slots);
  table.insert(std::move(two.entry), slots);
  const Entry* held = find_number(table, 1, slot);
  REQUIRE(held == one.address);
  CHECK(slots.is_looked_at(held));
  CHECK(!slots.is_looked_at(two.address));
  table.clear(slots);
  CHECK(!one.answer.expired());
  CHECK(stated(*held) == 1);
  CHECK(two.answer.expired());
  CHECK(find_number(table, 1, slot) == nullptr);
  // The next look at another entry ends the announcement.
  table.insert(numbered(3).entry, slots);
  CHECK(find_number(table, 3, slot) != nullptr);
  CHECK(!slots.is_looked_at(one.address));
  table.insert(numbered(4).entry, slots);
  CHECK(one.answer.expired());
  ReaderSlots::give_back(slot);
}

TEST_CASE("a slot that is given back announces no entry and is reused") {
  ReaderSlots slots;
  ReaderSlot& first = slots.take();
  ReaderSlot& second = slots.take();
  CHECK(&first != &second);
  EntryTable table(64, kAmpleBytes);
  Numbered one = numbered(1);
  table.insert(std::move(one.entry), slots);
  REQUIRE(find_number(table, 1, first) == one.address);
  ReaderSlots::give_back(first);
  CHECK(!slots.is_looked_at(one.address));
  CHECK(&slots.take() == &first);
  CHECK(&slots.take() != &second);
  int count = 0;
  slots.each([&](const ReaderSlot&) { ++count; });
  CHECK(count == 3);
}

TEST_CASE("an entry that is hit outlives entries that are not") {
  ReaderSlots slots;
  ReaderSlot& slot = slots.take();
  EntryTable table(16, kAmpleBytes);
  table.insert(numbered(0).entry, slots);
  for (std::uint64_t number = 1; number < 500; ++number) {
    REQUIRE(find_number(table, 0, slot) != nullptr);
    table.insert(numbered(number).entry, slots);
  }
  CHECK(table.entries() == 16);
  CHECK(table.evictions() == 500 - 16);
  ReaderSlots::give_back(slot);
}

// The thread sanitizer sees every access of this test. Without it, an answer
// of another key, or one that was freed, fails the test.
TEST_CASE(
    "readers find complete answers while writers insert, evict and clear") {
  constexpr std::uint64_t kNumbers = 64;
  const int rounds = testing::kThreadSanitizer ? 300 : testing::scaled(6'000);
  // On a busy machine all rounds may end before a reader first runs, so the
  // writers go on until the readers have found this many entries.
  constexpr std::uint64_t kLeastFound = 1'000;
  ReaderSlots slots;
  std::mutex writing;
  std::vector<std::weak_ptr<const OutputSharding>> answers;
  std::atomic<std::uint64_t> wrong{0};
  std::atomic<std::uint64_t> found{0};
  {
    EntryTable table(32, kAmpleBytes);
    std::vector<std::thread> threads;
    std::atomic<int> writers{2};
    for (unsigned t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random(t);
        for (int n = 0; n < rounds || found < kLeastFound; ++n) {
          Numbered made = numbered(random() % kNumbers);
          const std::scoped_lock lock(writing);
          answers.push_back(made.answer);
          if (!table.insert(std::move(made.entry), slots)) ++wrong;
          if (random() % 256 == 0) table.clear(slots);
        }
        --writers;
      });
    }
    for (unsigned t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random(100 + t);
        while (writers > 0) {
          // A slot is taken and given back now and then, as threads end.
          ReaderSlot& slot = slots.take();
          for (int n = 0; n < 200; ++n) {
            const std::uint64_t number = random() % kNumbers;
            const Entry* entry = find_number(table, number, slot);
            if (entry == nullptr) continue;
            ++found;
            if (stated(*entry) != static_cast<std::int64_t>(number)) ++wrong;
          }
          ReaderSlots::give_back(slot);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    // No reader is left, so only the stored entries are alive after an insert.
    table.insert(numbered(kNumbers).entry, slots);
    std::size_t alive = 0;
    for (const auto& answer : answers) alive += answer.expired() ? 0 : 1;
    CHECK(alive + 1 == table.entries());
  }
  CHECK(wrong == 0);
  CHECK(found >= kLeastFound);
  for (const auto& answer : answers) CHECK(answer.expired());
}

}  // namespace
}  // namespace shardprop

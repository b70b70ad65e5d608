// ArgumentUses: the record of an operator grows with what its definition reads.
#include "propagate/argument_uses.h"

#include "propagate/fixtures.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

namespace shardprop {
namespace {

using testing::shared_library;
using Looks = std::vector<Look>;

const Looks kNone3 = {Look::kNothing, Look::kNothing, Look::kNothing};
const Looks kSign3 = {Look::kNothing, Look::kNothing, Look::kSign};

std::shared_ptr<const FunctionSchema> add_function() {
  return shared_library()->find("aten.add.Tensor");
}

TEST_CASE("an operator that was not learned has no record") {
  ArgumentUses uses;
  const auto add = add_function();
  CHECK(uses.find(add.get(), 0) == nullptr);
  const ArgumentUse* use = uses.learn(add, 0, kSign3, false);
  REQUIRE(use != nullptr);
  CHECK(uses.find(add.get(), 0) == use);
  CHECK(use->function == add);
  CHECK(use->generation == 0);
  CHECK(use->version == 0);
  CHECK(use->looks == kSign3);
  CHECK(!use->shares_shapes);
  CHECK(uses.find(shared_library()->find("aten.mul.Tensor").get(), 0) ==
        nullptr);
}

TEST_CASE("reads that are known already change no record") {
  ArgumentUses uses;
  const auto add = add_function();
  const ArgumentUse* use = uses.learn(add, 0, kSign3, true);
  CHECK(uses.learn(add, 0, kSign3, true) == use);
  CHECK(uses.learn(add, 0, kSign3, false) == use);
  CHECK(uses.learn(add, 0, kNone3, false) == use);
  CHECK(uses.find(add.get(), 0) == use);
}

TEST_CASE("a closer read makes a new version that has all reads") {
  ArgumentUses uses;
  const auto add = add_function();
  const ArgumentUse* first = uses.learn(add, 0, kSign3, false);
  const Looks other = {Look::kNothing, Look::kValue, Look::kKind};
  const ArgumentUse* second = uses.learn(add, 0, other, false);
  REQUIRE(second != nullptr);
  CHECK(second != first);
  CHECK(second->version == 1);
  CHECK(second->looks == Looks{Look::kNothing, Look::kValue, Look::kSign});
  CHECK(uses.find(add.get(), 0) == second);
  // A reader may still use the older record.
  CHECK(first->version == 0);
  CHECK(first->looks == kSign3);
}

TEST_CASE("shared shapes are remembered without a new version") {
  ArgumentUses uses;
  const auto add = add_function();
  const ArgumentUse* first = uses.learn(add, 0, kSign3, false);
  const ArgumentUse* second = uses.learn(add, 0, kSign3, true);
  CHECK(second != first);
  CHECK(second->version == first->version);
  CHECK(second->shares_shapes);
  // A closer read keeps what is known about shapes.
  const ArgumentUse* third =
      uses.learn(add, 0, {Look::kNothing, Look::kNothing, Look::kValue}, false);
  CHECK(third->shares_shapes);
  CHECK(third->version == 1);
}

TEST_CASE("a new generation forgets the reads of the older library") {
  ArgumentUses uses;
  const auto add = add_function();
  uses.learn(add, 4, kSign3, true);
  CHECK(uses.find(add.get(), 5) == nullptr);
  CHECK(uses.find(add.get(), 3) == nullptr);
  const ArgumentUse* use = uses.learn(add, 5, kNone3, false);
  REQUIRE(use != nullptr);
  CHECK(use->looks == kNone3);
  CHECK(!use->shares_shapes);
  CHECK(use->version == 0);
  CHECK(uses.find(add.get(), 5) == use);
  CHECK(uses.find(add.get(), 4) == nullptr);
}

TEST_CASE("every operator has a record of its own, also if places collide") {
  ArgumentUses uses;
  // So many that some have the same place in the table.
  std::vector<std::shared_ptr<const FunctionSchema>> functions;
  for (int n = 0; n < 1'000; ++n) {
    functions.push_back(
        std::make_shared<const FunctionSchema>(*add_function()));
  }
  for (std::size_t f = 0; f < functions.size(); ++f) {
    const Looks looks(3, f % 2 == 0 ? Look::kSign : Look::kValue);
    REQUIRE(uses.learn(functions[f], 0, looks, f % 3 == 0) != nullptr);
  }
  for (std::size_t f = 0; f < functions.size(); ++f) {
    const ArgumentUse* use = uses.find(functions[f].get(), 0);
    REQUIRE(use != nullptr);
    CHECK(use->function == functions[f]);
    CHECK(use->looks == Looks(3, f % 2 == 0 ? Look::kSign : Look::kValue));
    CHECK(use->shares_shapes == (f % 3 == 0));
  }
}

TEST_CASE("a record that cannot be kept is refused, and older ones stay") {
  ArgumentUses uses;
  const auto add = add_function();
  // Each generation needs a new record, until too many are kept.
  std::uint64_t generation = 0;
  while (uses.learn(add, generation, kSign3, false) != nullptr) {
    REQUIRE(generation < (1 << 20));
    ++generation;
  }
  REQUIRE(generation > 1'000);
  CHECK(uses.find(add.get(), generation) == nullptr);
  const ArgumentUse* last = uses.find(add.get(), generation - 1);
  REQUIRE(last != nullptr);
  CHECK(uses.learn(add, generation - 1, kSign3, false) == last);
}

TEST_CASE("threads that find a record while it grows see complete records") {
  ArgumentUses uses;
  const auto add = add_function();
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 2; ++t) {
    readers.emplace_back([&] {
      while (!done) {
        const ArgumentUse* use = uses.find(add.get(), 0);
        if (use == nullptr) continue;
        // Version v has read v + 1 arguments.
        std::uint64_t read = 0;
        for (const Look look : use->looks) read += look == Look::kValue ? 1 : 0;
        if (read != use->version + 1) ++wrong;
      }
    });
  }
  Looks looks(200, Look::kNothing);
  for (Look& look : looks) {
    look = Look::kValue;
    REQUIRE(uses.learn(add, 0, looks, false) != nullptr);
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  CHECK(wrong == 0);
  CHECK(uses.find(add.get(), 0)->version == 199);
}

}  // namespace
}  // namespace shardprop

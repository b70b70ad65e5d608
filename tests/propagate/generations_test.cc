// Which library answers a call while set_library() replaces it: two libraries
// whose answers differ.
#include <shardprop/propagate/caching_propagator.h>

#include "propagate/fixtures.h"
#include "support/property.h"
#include "support/result_checks.h"

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace shardprop {
namespace {

using testing::call;
using testing::full_counts;
using testing::layouts;
using testing::shared_library;
using testing::value_of;

// `on_bind` runs whenever the library works out a call of mm.
std::shared_ptr<const OpLibrary> mm_with_partials(
    const std::function<void()>& on_bind) {
  return value_of(shared_library()->with(
      {.name = "aten.mm",
       .definition = einsum("mk,kn->mn")
                         .refine("hook", [on_bind](const auto&, IndexSpace&) {
                           on_bind();
                         })}));
}

std::shared_ptr<const OpLibrary> mm_without_partials() {
  return value_of(shared_library()->with(
      {.name = "aten.mm", .definition = einsum("m[k],[k]n->mn")}));
}

OpSchema mm_of(std::int64_t rows) {
  return call("aten.mm.default",
              {"f32[" + std::to_string(rows) + ",8]", "f32[8,6]"});
}

CachingPropagator cache_on(std::shared_ptr<const OpLibrary> library,
                           const CacheOptions& options = {}) {
  return testing::cache_of(value_of(ShardingPropagator::create(
                               value_of(DeviceMesh::parse("2")),
                               default_topology(), std::move(library))),
                           options);
}

bool has_partials(const OutputSharding& sharding) {
  return to_string(sharding.outputs[0].layout()) == "P(sum)";
}

TEST_CASE(
    "a call after set_library() does not get the answer of a miss that "
    "began before it") {
  std::promise<void> began;
  std::promise<void> may_end;
  std::atomic<bool> first{true};
  CachingPropagator cache = cache_on(mm_with_partials([&] {
    if (!first.exchange(false)) return;
    began.set_value();
    may_end.get_future().wait();
  }));
  const auto given = layouts({"S(1)", "S(0)"});
  const auto ask = [&] { return cache.propagate(mm_of(16), given); };
  auto old_answer = std::async(std::launch::async, ask);
  began.get_future().wait();
  REQUIRE(cache.set_library(mm_without_partials()).has_value());
  auto new_answer = std::async(std::launch::async, ask);
  // It is answered, or waits for the old miss.
  while (new_answer.wait_for(std::chrono::milliseconds(1)) !=
             std::future_status::ready &&
         cache.statistics().waits == 0) {
  }
  may_end.set_value();
  CHECK(has_partials(*value_of(old_answer.get())));
  CHECK_FALSE(has_partials(*value_of(new_answer.get())));
  // Nor is the old answer kept.
  CHECK_FALSE(has_partials(*value_of(ask())));
  CHECK(cache.statistics().misses == 2);
}

// The generations in which a call may be answered: those from the last one
// that was complete when the call began to the last one that had begun when it
// ended.
class GenerationClock {
 public:
  void begin_change() { ++begun_; }
  void end_change() { ++complete_; }
  int complete() const { return complete_; }
  int begun() const { return begun_; }

 private:
  std::atomic<int> begun_{0};
  std::atomic<int> complete_{0};
};

TEST_CASE("every answer is one of the library at the time of the call") {
  // Generation 0, 2, 4, ... has partials, 1, 3, 5, ... has none.
  const std::array<std::shared_ptr<const OpLibrary>, 2> libraries = {
      mm_with_partials([] { std::this_thread::yield(); }),
      mm_without_partials()};
  CachingPropagator cache = cache_on(libraries[0], {.most_entries = 64});
  const auto given = layouts({"S(1)", "S(0)"});
  const int rounds = full_counts() ? 20'000 : 1500;
  const int changes = full_counts() ? 400 : 12;
  GenerationClock clock;
  std::atomic<int> wrong{0};
  std::atomic<int> decided{0};
  std::atomic<int> working{4};
  const auto check = [&](int complete, const OutputSharding& answer,
                         std::int64_t rows) {
    const int begun = clock.begun();
    if (answer.outputs[0].meta().size(0) != rows) ++wrong;
    if (begun != complete) return;
    ++decided;
    if (has_partials(answer) != (complete % 2 == 0)) ++wrong;
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      auto reader = cache.reader();
      for (int i = 0; i < rounds || clock.complete() < changes; ++i) {
        // Calls that several threads make at once, even sizes and uneven ones.
        const std::int64_t rows = 2 + i % 40;
        const OpSchema op = mm_of(rows);
        const int complete = clock.complete();
        if (i % 4 == t) {
          const auto shared = cache.propagate(op, given);
          if (!shared) {
            ++wrong;
          } else {
            check(complete, **shared, rows);
          }
          continue;
        }
        const auto found = reader->propagate(op, given);
        if (!found) {
          ++wrong;
        } else {
          check(complete, **found, rows);
        }
      }
      --working;
    });
  }
  threads.emplace_back([&] {
    while (working > 0) {
      clock.begin_change();
      const auto& next = libraries[static_cast<std::size_t>(clock.begun() % 2)];
      if (!cache.set_library(next)) ++wrong;
      clock.end_change();
      for (int i = 0; i < 200 && working > 0; ++i) std::this_thread::yield();
      if (clock.complete() % 16 == 0) cache.clear();
    }
  });
  for (std::thread& thread : threads) thread.join();
  MESSAGE(decided.load() << " answers of one generation, " << clock.complete()
                         << " changes");
  CHECK(wrong == 0);
  CHECK(decided > rounds / 4);
}

}  // namespace
}  // namespace shardprop

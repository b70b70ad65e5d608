#include <shardprop/propagate/caching_propagator.h>

#include "propagate/drawn_calls.h"
#include "propagate/fixtures.h"
#include "support/property.h"
#include "support/result_checks.h"

#include <atomic>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace shardprop {
namespace {

using testing::call;
using testing::CallDrawer;
using testing::DrawnCall;
using testing::full_counts;
using testing::layouts;
using testing::propagator_on;
using testing::shared_library;
using testing::value_of;

OpSchema mm(std::int64_t batch) {
  return call("aten.mm.default",
              {"f32[" + std::to_string(batch) + ",8]", "f32[8,6]"});
}

TEST_CASE("a call is a miss, then hits") {
  const CachingPropagator cache = testing::cache_of(propagator_on("2"));
  auto reader = value_of(cache.reader());
  const auto given = layouts({"S(0)", "S(0)"});
  const OutputSharding first = *value_of(reader.propagate(mm(16), given));
  const OutputSharding* second = value_of(reader.propagate(mm(16), given));
  CHECK(testing::difference(first, *second, cache.propagator().mesh()).empty());
  CHECK(value_of(cache.propagate(mm(16), given))->outputs == first.outputs);
  const CacheStatistics seen = cache.statistics();
  CHECK(seen.misses == 1);
  CHECK(seen.hits == 2);
  CHECK(seen.entries == 1);
  CHECK(seen.bytes > 0);
}

TEST_CASE("a call by specs hits the entry of the same call by layouts") {
  const CachingPropagator cache = testing::cache_of(propagator_on("2"));
  auto reader = value_of(cache.reader());
  value_of(reader.propagate(mm(16), layouts({"S(0)", "R"})));
  const DeviceMesh mesh = cache.propagator().mesh();
  const std::vector<TensorSpec> specs = {
      value_of(TensorSpec::parse("f32[16,8] S(0)", mesh)),
      value_of(TensorSpec::parse("f32[8,6] R", mesh))};
  value_of(reader.propagate(mm(16), specs));
  CHECK(cache.statistics().hits == 1);
  const std::vector<TensorSpec> elsewhere = {
      specs[0], value_of(TensorSpec::parse("f32[8,6] R",
                                           value_of(DeviceMesh::parse("4"))))};
  CHECK(testing::code_of(reader.propagate(mm(16), elsewhere)) ==
        ErrorCode::kRedistributeMeshes);
}

TEST_CASE("calls that differ in an ignored scalar share an answer") {
  const CachingPropagator cache = testing::cache_of(propagator_on("2"));
  auto reader = value_of(cache.reader());
  const auto ask = [&](std::string_view name,
                       const std::vector<std::string>& tensors,
                       std::vector<GivenArgument> others) {
    const std::uint64_t before = cache.statistics().misses;
    value_of(reader.propagate(
        call(name, tensors, others),
        std::vector<Layout>(tensors.size(), value_of(Layout::parse("S(0)")))));
    return cache.statistics().misses - before;
  };
  const std::vector<std::string> two = {"f32[8,4]", "f32[8,4]"};
  CHECK(ask("aten.add.Tensor", two, {{"alpha", 0.5}}) == 1);
  CHECK(ask("aten.add.Tensor", two, {{"alpha", 0.25}}) == 0);
  CHECK(ask("aten.add.Tensor", two, {{"alpha", -0.5}}) == 1);  // turns max
  CHECK(ask("aten.add.Tensor", two, {{"alpha", 0.0}}) == 1);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(ask("aten.add.Tensor", two, {{"alpha", nan}}) == 1);  // it has no sign
  CHECK(ask("aten.add.Tensor", two, {{"alpha", nan}}) == 0);
  CHECK(ask("aten.leaky_relu.default", {"f32[8,4]"}, {{"", 0.1}}) == 1);
  CHECK(ask("aten.leaky_relu.default", {"f32[8,4]"}, {{"", 0.2}}) == 0);
  CHECK(ask("aten.sum.dim_IntList", {"f32[8,4]"},
            {{"dim", std::vector<std::int64_t>{1}}}) == 1);
  CHECK(ask("aten.sum.dim_IntList", {"f32[8,4]"},
            {{"dim", std::vector<std::int64_t>{0}}}) == 1);
}

TEST_CASE("a new batch size is a hit if the answer holds for all sizes") {
  const CachingPropagator cache = testing::cache_of(propagator_on("2"));
  auto reader = value_of(cache.reader());
  const auto given = layouts({"S(0)", "R"});
  value_of(reader.propagate(mm(16), given));
  const OutputSharding* other = value_of(reader.propagate(mm(24), given));
  CHECK(to_string(other->outputs[0]) == "f32[24,6] S(0)");
  CHECK(to_string(other->inputs[0]) == "f32[24,8] S(0)");
  CacheStatistics seen = cache.statistics();
  CHECK(seen.misses == 1);
  CHECK(seen.shared_hits == 1);
  // The second time it gets an entry of its own, the third it has it.
  value_of(reader.propagate(mm(24), given));
  CHECK(value_of(reader.propagate(mm(24), given))->outputs[0].meta().size(0) ==
        24);
  CHECK(cache.statistics().hits == 1);
  // Cut unevenly, and of one row, it is a matter of its own.
  value_of(reader.propagate(mm(25), given));
  value_of(reader.propagate(mm(1), given));
  CHECK(cache.statistics().misses == 3);
}

// Compares the answers of a cache for calls and their siblings with answers
// without a cache.
void check_answers(std::string_view mesh, int calls, std::uint64_t seed,
                   const CacheOptions& options,
                   const std::vector<std::string>& names = {}) {
  const ShardingPropagator plain = propagator_on(mesh);
  const CachingPropagator cache = testing::cache_of(plain, options);
  auto reader = value_of(cache.reader());
  CallDrawer drawer(*shared_library(), plain.mesh(), seed);
  int wrong = 0;
  std::size_t next_name = 0;
  for (int asked = 0; asked < calls;) {
    auto drawn = names.empty()
                     ? drawer.call()
                     : drawer.call_of(names[next_name++ % names.size()]);
    if (!drawn) continue;
    for (int sibling = 0; sibling < 10; ++sibling, ++asked) {
      const DrawnCall next = sibling == 0 ? *drawn : drawer.sibling(*drawn);
      const auto expected = plain.propagate(next.op, next.layouts);
      const auto found = reader.propagate(next.op, next.layouts);
      std::string what;
      if (expected.has_value() != found.has_value()) {
        what = expected ? "refused" : "not refused";
      } else if (expected) {
        what = testing::difference(*expected, **found, plain.mesh());
      } else if (expected.error().code != found.error().code) {
        what = "another error";
      }
      if (what.empty()) continue;
      CAPTURE(to_text(*drawn));
      CAPTURE(to_text(next));
      CAPTURE(what);
      CHECK(++wrong == 0);
      if (wrong > 5) return;
    }
  }
  const CacheStatistics seen = cache.statistics();
  MESSAGE(mesh << ": " << seen.hits << " hits, " << seen.shared_hits
               << " of other sizes, " << seen.misses << " misses");
  CHECK(seen.hits + seen.shared_hits > static_cast<std::uint64_t>(calls) / 8);
}

TEST_CASE("every answer from the cache equals the one without") {
  // 200,000 at full counts.
  const int scale = full_counts() ? 50 : 1;
  check_answers("2", 2000 * scale, 11, {});
  check_answers("2,3", 1000 * scale, 12, {});
  check_answers("1,2,2", 500 * scale, 13, {});
  check_answers("4", 500 * scale, 14, {.most_entries = 32});
  // Answers for other sizes serve these operators.
  check_answers(
      "2,2", 1500 * scale, 15, {},
      {"aten.mm.default", "aten.add.Tensor", "aten.bmm.default",
       "aten.relu.default", "aten.sum.dim_IntList", "aten.addmm.default",
       "aten.amax.default", "aten.mul.Tensor", "aten.where.self",
       "aten.linear.default", "aten.gelu.default", "aten.mean.dim"});
}

TEST_CASE("layouts and strides that are nearly the same are answered apart") {
  const CachingPropagator cache = testing::cache_of(propagator_on("2,2"));
  auto reader = value_of(cache.reader());
  const ShardingPropagator alone = cache.propagator();
  const std::vector<std::string> metas = {"f32[8,8]",       "f32[8,8]{1,8}",
                                          "f32[8,8]{16,1}", "f32[8,8]{0,1}",
                                          "i32[8,8]",       "f32[8,8,1]"};
  std::vector<Layout> tried = {Layout()};
  for (const char* text : {"R",
                           "R,R",
                           "R,R,R",
                           "R,R,R,R",
                           "R,R,R,R,R",
                           "S(0),R",
                           "R,S(0)",
                           "S(1),R",
                           "S(64),R",
                           "S(65),R",
                           "S(128),R",
                           "S(127),R",
                           "S(63),R",
                           "S(0),S(0)",
                           "S(0)@1,S(0)@0",
                           "SS(0,2),R",
                           "SS(0,3),R",
                           "SS(1,2),R",
                           "SS(0,2),S(0)",
                           "P(sum),R",
                           "P(avg),R",
                           "P(max),R",
                           "P(sum,f64),R",
                           "P(sum,f32),R",
                           "P(sum),P(sum)",
                           "S(0),R,R",
                           "R,R,R,R,S(0)"}) {
    tried.push_back(value_of(Layout::parse(text)));
  }
  for (int round = 0; round < 2; ++round) {
    for (const std::string& meta : metas) {
      const OpSchema op = call("aten.neg.default", {meta});
      for (const Layout& layout : tried) {
        INFO(meta << " " << to_string(layout));
        const auto expected = alone.propagate(op, std::vector{layout});
        const auto seen = reader.propagate(op, std::vector{layout});
        REQUIRE(expected.has_value() == seen.has_value());
        if (!seen) continue;
        CHECK(testing::difference(*expected, **seen, alone.mesh()).empty());
      }
    }
  }
  CHECK(cache.statistics().hits > 0);
}

TEST_CASE("entries and bytes stay within their bounds") {
  for (const CacheOptions& options :
       {CacheOptions{.most_entries = 100}, CacheOptions{.most_entries = 7},
        CacheOptions{.most_bytes = 20'000}, CacheOptions{.most_entries = 0},
        CacheOptions{.most_bytes = 10}}) {
    CacheOptions exact = options;
    exact.share_shapes = false;
    const CachingPropagator cache =
        testing::cache_of(propagator_on("2"), exact);
    auto reader = value_of(cache.reader());
    for (std::int64_t batch = 1; batch < 500; ++batch) {
      value_of(reader.propagate(mm(batch), layouts({"S(0)", "R"})));
      const CacheStatistics seen = cache.statistics();
      CHECK(seen.entries <= options.most_entries);
      CHECK(seen.bytes <= options.most_bytes);
    }
    const CacheStatistics seen = cache.statistics();
    CHECK(seen.misses == 499);
    CHECK((seen.entries > 0) ==
          (options.most_entries > 0 && options.most_bytes > 1000));
  }
}

TEST_CASE("an entry that is used stays cached while others come and go") {
  CacheOptions options{.most_entries = 1024, .share_shapes = false};
  const CachingPropagator cache =
      testing::cache_of(propagator_on("2"), options);
  auto reader = value_of(cache.reader());
  const auto given = layouts({"S(0)", "R"});
  constexpr std::int64_t kHot = 160;
  std::int64_t once = 1000;
  const auto hot_misses = [&] {
    const std::uint64_t before = cache.statistics().misses;
    for (std::int64_t b = 1; b <= kHot; ++b) {
      value_of(reader.propagate(mm(b), given));
    }
    return cache.statistics().misses - before;
  };
  hot_misses();
  hot_misses();
  std::uint64_t missed = 0;
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 200; ++i) {
      value_of(reader.propagate(mm(once++), given));
    }
    missed += hot_misses();
  }
  MESSAGE("of " << 40 * kHot << " hot calls, " << missed << " missed");
  CHECK(missed < 40 * kHot / 50);
  CHECK(cache.statistics().entries <= 1024);
}

TEST_CASE("threads that read, miss, evict and change the library") {
  const ShardingPropagator plain = propagator_on("2");
  CacheOptions options{.most_entries = 64};
  CachingPropagator cache = testing::cache_of(plain, options);
  const auto given = layouts({"S(0)", "R"});
  std::atomic<int> wrong{0};
  const int rounds = full_counts() ? 20'000 : 600;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      auto reader = cache.reader();
      for (int i = 0; i < rounds; ++i) {
        const std::int64_t batch = 2 + (i * (t + 1)) % 300;
        const auto found = reader->propagate(mm(batch), given);
        if (!found || (*found)->outputs[0].meta().size(0) != batch ||
            (*found)->outputs[0].layout() != given[0]) {
          ++wrong;
        }
        if (i % 50 == 0) {
          const auto shared = cache.propagate(mm(batch), given);
          if (!shared || (*shared)->outputs[0].meta().size(0) != batch) ++wrong;
        }
        if (t == 0 && i % 100 == 99) {
          if (!cache.set_library(shared_library())) ++wrong;
        }
        if (t == 1 && i % 70 == 69) cache.clear();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(cache.statistics().entries <= 64);
}

TEST_CASE("threads that miss the same call compute it once") {
  constexpr std::uint64_t kThreads = 8;
  std::atomic<std::uint64_t> bound{0};
  std::optional<CachingPropagator> made;
  // The first computation ends when every other thread waits for it, or
  // computes the call itself.
  const auto counting = value_of(shared_library()->with(
      {.declaration = "test::slow(Tensor x) -> Tensor",
       .definition = pointwise().refine("slow", [&](const auto&, IndexSpace&) {
         ++bound;
         while (bound + made->statistics().waits < kThreads) {
           std::this_thread::yield();
         }
       })}));
  made.emplace(testing::cache_of(value_of(ShardingPropagator::create(
      value_of(DeviceMesh::parse("2")), default_topology(), counting))));
  const CachingPropagator& cache = *made;
  const OpSchema slow = value_of(
      make_op_schema(counting->find("test.slow.default"), {{"", TensorArg{0}}},
                     {value_of(TensorMeta::parse("f32[4]"))}));
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> answered{0};
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      if (cache.propagate(slow, layouts({"S(0)"}))) ++answered;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(answered == kThreads);
  CHECK(bound == 1);
  CHECK(cache.statistics().misses == 1);
  CHECK(cache.statistics().waits == kThreads - 1);
}

TEST_CASE("set_library() starts a generation without older answers") {
  CachingPropagator cache = testing::cache_of(propagator_on("2"));
  auto reader = value_of(cache.reader());
  const auto given = layouts({"S(1)", "S(0)"});
  CHECK(to_string(value_of(reader.propagate(mm(16), given))->outputs[0]) ==
        "f32[16,6] P(sum)");
  CHECK(cache
            .set_library(value_of(shared_library()->with(
                {.name = "aten.mm", .definition = einsum("m[k],[k]n->mn")})))
            .has_value());
  CHECK(to_string(value_of(reader.propagate(mm(16), given))->outputs[0]) !=
        "f32[16,6] P(sum)");
  CHECK(cache.statistics().generation == 1);
  CHECK(testing::code_of(cache.set_library(nullptr)) ==
        ErrorCode::kInvalidArgument);
}

TEST_CASE("a number that is NaN passes no maximum") {
  const CachingPropagator cache = testing::cache_of(propagator_on("2"));
  auto reader = value_of(cache.reader());
  const auto placement = [&](double factor) {
    const auto found = reader.propagate(
        call("aten.mul.Tensor", {"f32[8,4]"}, {{"other", factor}}),
        layouts({"P(max)"}));
    return to_string(value_of(found)->outputs[0].layout());
  };
  CHECK(placement(-2.0) == "P(min)");
  const std::string of_nan =
      placement(std::numeric_limits<double>::quiet_NaN());
  CHECK(of_nan.find("P(") == std::string::npos);
  CHECK(placement(2.0) == "P(max)");
}

TEST_CASE("a cache of any size is created, and bounded") {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  for (const CacheOptions& options :
       {CacheOptions{.most_entries = kMost, .most_bytes = kMost},
        CacheOptions{.most_entries = kMost},
        CacheOptions{.most_bytes = kMost}}) {
    const auto cache = CachingPropagator::create(propagator_on("2"), options);
    REQUIRE(cache.has_value());
    auto reader = value_of(cache->reader());
    const auto given = layouts({"S(0)", "R"});
    value_of(reader.propagate(mm(16), given));
    value_of(reader.propagate(mm(16), given));
    CHECK(cache->statistics().hits == 1);
  }
}

TEST_CASE("a guard of implicit moves checks cached answers too") {
  const CachingPropagator cache = testing::cache_of(
      propagator_on("2", {.moves = ImplicitMoves::kForbidden}));
  auto reader = value_of(cache.reader());
  for (int i = 0; i < 3; ++i) {
    CHECK(testing::code_of(reader.propagate(
              mm(16), layouts({"S(0)", "S(0)"}))) == ErrorCode::kNoStrategy);
    CHECK(reader.propagate(mm(16), layouts({"S(0)", "R"})).has_value());
  }
  CHECK(cache.statistics().misses == 2);
}

TEST_CASE("bad calls are refused each time, and readers outlive the cache") {
  auto reader = [] {
    const CachingPropagator cache = testing::cache_of(propagator_on("2"));
    return value_of(cache.reader());
  }();
  for (int i = 0; i < 2; ++i) {
    CHECK(testing::code_of(reader.propagate(mm(16), layouts({"S(0)"}))) ==
          ErrorCode::kInvalidArgument);
    CHECK(testing::code_of(reader.propagate(OpSchema{}, layouts({}))) ==
          ErrorCode::kInvalidArgument);
    CHECK(testing::code_of(reader.propagate(mm(16), layouts({"S(5)", "R"}))) ==
          ErrorCode::kShardDimOutOfRange);
  }
  CHECK(reader.propagate(mm(16), layouts({"S(0)", "R"})).has_value());
}

}  // namespace
}  // namespace shardprop

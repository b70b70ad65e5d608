#include "faults/failing_machine.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/propagate/caching_propagator.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string_view>
#include <thread>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

// Asks a cache for several calls, an error of its own among them; false where
// memory ran out.
bool ask_all(const CachingPropagator& cache, const OpSchema& mm,
             const OpSchema& softmax) {
  const auto layouts = [](const std::vector<std::string_view>& texts) {
    std::vector<Layout> out;
    for (const std::string_view text : texts) {
      out.push_back(Layout::parse(text).value());
    }
    return out;
  };
  std::vector<Layout> moves;
  std::vector<Layout> fits;
  std::vector<Layout> inside;
  try {
    moves = layouts({"S(0),R", "S(0),R"});
    fits = layouts({"S(0),R", "R,S(1)"});
    inside = layouts({"S(1),R"});
  } catch (const std::bad_alloc&) {
    return false;
  }
  auto reader = cache.reader();
  if (!reader) return reader.error().code != ErrorCode::kOutOfMemory;
  bool done = true;
  const auto check = [&](const Result<const OutputSharding*>& found) {
    if (found) {
      CHECK((*found)->outputs.size() == 1);
      return;
    }
    CHECK(found.error().code == ErrorCode::kOutOfMemory);
    CHECK(!found.error().help.empty());
    done = false;
  };
  for (int i = 0; i < 2; ++i) {
    check(reader->propagate(mm, moves));
    check(reader->propagate(mm, fits));
    check(reader->propagate(softmax, inside));
  }
  return done;
}

TEST_CASE("a thousand allocations that fail, in propagators and their cache") {
  const auto library = OpLibrary::standard();
  const auto call = [&](std::string_view name,
                        const std::vector<std::string_view>& tensors,
                        std::vector<GivenArgument> more) {
    std::vector<GivenArgument> given;
    std::vector<TensorMeta> metas;
    for (const std::string_view text : tensors) {
      given.push_back({"", TensorArg{static_cast<std::int32_t>(metas.size())}});
      metas.push_back(value_of(TensorMeta::parse(text)));
    }
    given.insert(given.end(), more.begin(), more.end());
    return value_of(make_op_schema(library->find(name), given, metas));
  };
  const OpSchema mm = call("aten.mm.default", {"f32[16,8]", "f32[8,4]"}, {});
  const OpSchema softmax = call("aten._softmax.default", {"f32[16,8]"},
                                {{"", std::int64_t{1}}, {"", false}});
  const ShardingPropagator propagator = value_of(ShardingPropagator::create(
      value_of(DeviceMesh::parse("2,2")), default_topology(), library));
  const CachingPropagator cache =
      value_of(CachingPropagator::create(propagator));
  ask_all(cache, mm, softmax);  // what the process makes once

  const auto fresh = [&] {
    return ShardingPropagator::create(propagator.mesh(), propagator.topology(),
                                      library);
  };
  failing_machine::heal();
  {
    const CachingPropagator first =
        value_of(CachingPropagator::create(value_of(fresh())));
    REQUIRE(ask_all(first, mm, softmax));
  }
  const std::int64_t needed = failing_machine::allocations();
  int refused = 0;
  constexpr int kTries = 1000;
  for (int i = 0; i < kTries; ++i) {
    CAPTURE(i);
    failing_machine::heal();
    const auto made = fresh();
    REQUIRE(made.has_value());
    const CachingPropagator broken = value_of(CachingPropagator::create(*made));
    failing_machine::memory_after(needed * i / kTries / 2);
    if (!ask_all(broken, mm, softmax)) ++refused;
    failing_machine::heal();
    // It is none the worse for it.
    REQUIRE(ask_all(broken, mm, softmax));
  }
  CHECK(refused > kTries / 2);
}

TEST_CASE("hits wait for no thread, wherever it has stopped in a miss") {
  const auto library = OpLibrary::standard();
  const auto mm = [&](std::int64_t rows) {
    return value_of(make_op_schema(
        library->find("aten.mm.default"),
        {{"", TensorArg{0}}, {"", TensorArg{1}}},
        {value_of(TensorMeta::contiguous({rows, 8}, DType::kF32)),
         value_of(TensorMeta::contiguous({8, 4}, DType::kF32))}));
  };
  const std::vector<Layout> given = {value_of(Layout::parse("S(0)")),
                                     value_of(Layout::parse("R"))};
  const auto fresh = [&] {
    return value_of(
        CachingPropagator::create(value_of(ShardingPropagator::create(
            value_of(DeviceMesh::parse("2")), default_topology(), library))));
  };
  bool was_stopped = true;
  int stops = 0;
  for (std::int64_t at = 0; was_stopped; at += 1 + at / 20, ++stops) {
    const CachingPropagator cache = fresh();
    auto reader = value_of(cache.reader());
    value_of(reader.propagate(mm(16), given));
    failing_machine::Stop stop;
    stop.at = at;
    std::atomic<bool> has_ended{false};
    std::thread missing([&] {
      failing_machine::stop_this_thread(&stop);
      // Uneven shards have no family: a miss, which is kept under the lock.
      value_of(cache.propagate(mm(15), given));
      failing_machine::stop_this_thread(nullptr);
      has_ended = true;
    });
    while (!stop.has_stopped && !has_ended) std::this_thread::yield();
    auto hits = std::async(std::launch::async, [&] {
      int found = 0;
      for (int i = 0; i < 3; ++i) {
        found += reader.propagate(mm(16), given).has_value() ? 1 : 0;
        // This call has another size. A second call of one size would be
        // cached.
        found += reader.propagate(mm(24), given).has_value() ? 1 : 0;
      }
      return found;
    });
    const bool waits =
        hits.wait_for(std::chrono::seconds(20)) != std::future_status::ready;
    was_stopped = stop.has_stopped;
    stop.may_go_on = true;
    missing.join();
    CAPTURE(at);
    REQUIRE_FALSE(waits);
    CHECK(hits.get() == 6);
  }
  CHECK(stops > 20);
}

}  // namespace
}  // namespace shardprop

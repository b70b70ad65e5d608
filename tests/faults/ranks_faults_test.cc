#include "faults/failing_machine.h"
#include "support/result_checks.h"

#include <shardprop/collective/functional.h>
#include <shardprop/collective/local_tensor.h>
#include <shardprop/collective/thread_world.h>
#include <shardprop/kernels/thread_pool.h>

#include <atomic>
#include <chrono>
#include <new>
#include <thread>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

TEST_CASE("a rank without a thread fails itself and the others") {
  for (const std::int64_t threads : {0, 2}) {
    failing_machine::threads_after(threads);
    const auto ends = run_ranks(4, {}, [](Communicator& communicator) {
      const Group group = value_of(Group::world(4));
      const LocalTensor mine = value_of(LocalTensor::empty({4}, DType::kF32));
      const auto whole = all_gather_tensor(communicator, mine, 0, group);
      if (!whole) return Result<void>(fail(whole.error()));
      const auto done = whole->wait();
      return done ? Result<void>() : Result<void>(fail(done.error()));
    });
    failing_machine::heal();
    REQUIRE(ends.size() == 4);
    for (std::size_t r = 0; r < ends.size(); ++r) {
      CAPTURE(r);
      REQUIRE(!ends[r]);
      if (r >= static_cast<std::size_t>(threads)) {
        CHECK(ends[r].error().code == ErrorCode::kThreadStart);
      }
    }
  }
}

TEST_CASE("ranks say that there is no memory without any") {
  CommunicatorOptions options;
  options.timeout = std::chrono::seconds(2);
  std::atomic<int> came = 0;
  const auto ends = run_ranks(3, options, [&](Communicator& communicator) {
    const Group group = value_of(Group::world(3));
    const LocalTensor mine = value_of(LocalTensor::empty({4}, DType::kF32));
    ++came;
    while (came < 3) std::this_thread::yield();
    if (communicator.rank() == 1) {
      failing_machine::memory_above(0);
      throw std::bad_alloc();
    }
    const auto whole = all_gather_tensor(communicator, mine, 0, group);
    if (!whole) return Result<void>(fail(whole.error()));
    const auto done = whole->wait();
    return done ? Result<void>() : Result<void>(fail(done.error()));
  });
  failing_machine::heal();
  REQUIRE(ends.size() == 3);
  for (const Result<void>& end : ends) CHECK(!end);
  CHECK(ends[1].error().code == ErrorCode::kOutOfMemory);
  CHECK(ends[1].error().message == "no memory left");
}

TEST_CASE("a communicator survives a call that finds no memory") {
  const Group group = value_of(Group::world(1));
  const LocalTensor in = value_of(LocalTensor::zeros({4}, DType::kF32));
  const LocalTensor out = value_of(LocalTensor::zeros({4}, DType::kF32));
  bool failed = true;
  for (std::int64_t allocation = 0; failed; ++allocation) {
    CAPTURE(allocation);
    REQUIRE(allocation < 1000);
    ThreadWorld world(1);
    const auto rank = world.communicator(0);
    const auto call = [&]() -> CollectiveCall {
      return {
          .kind = CollectiveKind::kAllReduce, .inputs = {in}, .outputs = {out}};
    };
    CollectiveCall first = call();
    failing_machine::memory_after(allocation);
    failed = false;
    try {
      failed = !rank->run(group, std::move(first)).has_value();
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    failing_machine::heal();
    // Every seat has a channel, and no call was skipped.
    CHECK(rank->stats().parked == 0);
    if (!failed || rank->failure()) continue;
    const Result<void> again = rank->run(group, call());
    if (!again) FAIL_CHECK(to_string(again.error()));
  }
}

TEST_CASE("a pool without threads does its work on the caller's") {
  for (const std::int64_t threads : {0, 1}) {
    failing_machine::threads_after(threads);
    kernels::ThreadPool pool(4);
    failing_machine::heal();
    CHECK(pool.threads() == threads + 1);
    std::vector<std::atomic<int>> ran(100);
    pool.run(
        100,
        [](void* context, std::int64_t i) {
          ++(*static_cast<std::vector<std::atomic<int>>*>(
              context))[static_cast<std::size_t>(i)];
        },
        &ran);
    for (const auto& count : ran) CHECK(count == 1);
  }
}

}  // namespace
}  // namespace shardprop

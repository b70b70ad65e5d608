// Faults: a rank that throws, leaves, hangs, or calls something else is
// reported on all others in time, with who and where.
#include <shardprop/collective/functional.h>
#include <shardprop/collective/thread_world.h>

#include "collective/values.h"
#include "collective/worlds.h"
#include "support/property.h"
#include "support/result_checks.h"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

namespace shardprop {
namespace {

using namespace std::chrono_literals;
using testing::some_tensor;
using testing::value_of;

constexpr std::int64_t kFaultRanks = 4;
constexpr auto kTimeout = 200ms;
// Beyond the timeout only for the machine's own hiccups.
constexpr auto kInTime = 5s;

CommunicatorOptions hasty() { return {.timeout = kTimeout}; }

// A program of several steps in several groups, as a redistribution is.
Result<void> steps(Communicator& communicator,
                   const std::function<void(int)>& before_step) {
  static const Group world = value_of(Group::world(kFaultRanks));
  static const Group pairs = value_of(Group::lists({{0, 1}, {2, 3}}));
  LocalTensor data = some_tensor(communicator.rank(), {4, 8000}, DType::kF32);
  for (int step = 0; step < 6; ++step) {
    before_step(step);
    const CollectiveOptions options{.where = "step " + std::to_string(step)};
    const auto result = [&]() -> Result<AsyncTensor> {
      switch (step % 3) {
        case 0:
          return all_reduce(communicator, data, ReduceOp::kMax, world, options);
        case 1:
          return all_to_all_single(communicator, data, {}, pairs, options);
        default:
          return permute_tensor(communicator, data,
                                std::vector<std::int64_t>{1, 2, 3, 0}, world,
                                options);
      }
    }();
    if (!result) return fail(result.error());
    const Result<LocalTensor> waited = result->wait();
    if (!waited) return fail(waited.error());
    data = *waited;
  }
  return {};
}

bool mentions(const Error& error, const std::string& text) {
  return to_string(error).find(text) != std::string::npos;
}

std::string rank_name(std::int64_t rank) {
  return "rank " + std::to_string(rank);
}

enum class Fault { kThrows, kReturns, kHangs };

// Every rank but `guilty` must end with an error that names it, in time.
void inject(Fault fault, std::int64_t guilty, int at) {
  CAPTURE(guilty);
  CAPTURE(at);
  CAPTURE(static_cast<int>(fault));
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<int> survivors = 0;
  const auto ends = run_ranks(kFaultRanks, hasty(), [&](Communicator& c) {
    const bool mine = c.rank() == guilty;
    bool leave = false;
    const Result<void> end = steps(c, [&](int step) {
      if (!mine || step != at) return;
      if (fault == Fault::kThrows) throw std::runtime_error("no more paper");
      if (fault == Fault::kHangs) {
        while (survivors < kFaultRanks - 1) std::this_thread::sleep_for(1ms);
      }
      leave = fault == Fault::kReturns;
      if (leave) c.abort({ErrorCode::kOutOfMemory, "no room for step"});
    });
    if (!mine) ++survivors;
    return end;
  });
  CHECK(std::chrono::steady_clock::now() - begin < kInTime);
  for (std::int64_t r = 0; r < kFaultRanks; ++r) {
    const Result<void>& end = ends[static_cast<std::size_t>(r)];
    CAPTURE(r);
    REQUIRE_FALSE(end.has_value());
    CAPTURE(to_string(end.error()));
    if (r == guilty) continue;
    CHECK(mentions(end.error(), rank_name(guilty)));
    if (fault == Fault::kHangs) {
      CHECK(end.error().code == ErrorCode::kTimeout);
      CHECK(mentions(end.error(), "step " + std::to_string(at)));
    } else {
      CHECK(end.error().code == ErrorCode::kRankFailed);
      CHECK(mentions(end.error(), fault == Fault::kThrows
                                      ? "no more paper"
                                      : "no room for step"));
    }
  }
}

TEST_CASE("a fault at every step of every rank is everyone's") {
  for (int round = 0; round < testing::scaled(1); ++round) {
    for (std::int64_t guilty = 0; guilty < kFaultRanks; ++guilty) {
      for (int at = 0; at < 6; ++at) {
        inject(Fault::kThrows, guilty, at);
        inject(Fault::kReturns, guilty, at);
      }
    }
    inject(Fault::kHangs, round % kFaultRanks, round % 6);
    inject(Fault::kHangs, (round + 1) % kFaultRanks, (round + 3) % 6);
  }
}

TEST_CASE("a rank that leaves is missed at once, by name") {
  const Group group = value_of(Group::world(2));
  const auto begin = std::chrono::steady_clock::now();
  const auto ends =
      run_ranks(2, {.timeout = 60s}, [&](Communicator& c) -> Result<void> {
        if (c.rank() == 1) return {};
        return c.barrier(group);
      });
  CHECK(std::chrono::steady_clock::now() - begin < kInTime);
  CHECK(ends[1].has_value());
  REQUIRE_FALSE(ends[0].has_value());
  CHECK(ends[0].error().code == ErrorCode::kRankFailed);
  CHECK(mentions(ends[0].error(), "rank 1 left before call 0 of group {0,1}"));
  CHECK(mentions(ends[0].error(), "barrier"));
}

TEST_CASE("a communicator destroyed by an exception says so") {
  ThreadWorld world(2, hasty());
  const Group group = value_of(Group::world(2));
  const auto other = world.communicator(0);
  try {
    const auto mine = world.communicator(1);
    throw std::runtime_error("oops");
  } catch (const std::runtime_error&) {
  }
  const Result<void> end = other->barrier(group);
  REQUIRE_FALSE(end.has_value());
  CHECK(mentions(end.error(), "rank 1 threw and left"));
}

TEST_CASE("who is late is named with what it does instead") {
  const Group world = value_of(Group::world(3));
  const Group pair = value_of(Group::ranks({1, 2}));
  const auto ends = run_ranks(3, hasty(), [&](Communicator& c) -> Result<void> {
    if (c.rank() == 2) {
      c.set_timeout(20s);
      return c.run(pair,
                   {.kind = CollectiveKind::kSendRecv, .where = "cuddle"});
    }
    if (c.rank() == 1) std::this_thread::sleep_for(50ms);
    return c.barrier(world);
  });
  for (const Result<void>& end : ends) {
    REQUIRE_FALSE(end.has_value());
    CHECK(end.error().code == ErrorCode::kTimeout);
    CHECK(mentions(end.error(),
                   "rank 2 did not come to call 0 of group "
                   "{0,1,2}, all_gather of u8[1] (barrier) within 200 ms"));
    CHECK(mentions(end.error(),
                   "rank 2 is in call 0 of group {1,2}, send_recv (cuddle)"));
  }
}

// Two ranks that call different things.
void mismatch(const std::function<CollectiveCall(std::int64_t)>& call_of,
              const std::string& first, const std::string& second) {
  const Group group = value_of(Group::world(2));
  const auto ends = run_ranks(2, {.timeout = 20s}, [&](Communicator& c) {
    return c.run(group, call_of(c.rank()));
  });
  for (const Result<void>& end : ends) {
    REQUIRE_FALSE(end.has_value());
    CHECK(end.error().code == ErrorCode::kCollectiveMismatch);
    CAPTURE(to_string(end.error()));
    CHECK(mentions(end.error(), "rank 0 calls " + first));
    CHECK(mentions(end.error(), "rank 1 calls " + second));
  }
}

LocalTensor zeros(Dims sizes, DType dtype = DType::kF32) {
  return value_of(LocalTensor::zeros(std::move(sizes), dtype));
}

CollectiveCall reduce_call(Dims sizes, ReduceOp op, DType dtype) {
  return {.kind = CollectiveKind::kAllReduce,
          .op = op,
          .inputs = {zeros(sizes, dtype)},
          .outputs = {zeros(sizes, dtype)}};
}

TEST_CASE("mismatched collectives are named") {
  const auto sum = [](Dims sizes, DType dtype = DType::kF32) {
    return reduce_call(std::move(sizes), ReduceOp::kSum, dtype);
  };
  const auto pick = [](CollectiveCall a, CollectiveCall b) {
    return [a, b](std::int64_t rank) { return rank == 0 ? a : b; };
  };
  const CollectiveCall max = reduce_call({4}, ReduceOp::kMax, DType::kF32);
  const CollectiveCall gather{.kind = CollectiveKind::kAllGather,
                              .inputs = {zeros({4})},
                              .outputs = {zeros({4}), zeros({4})}};
  mismatch(pick(sum({4}), max), "all_reduce(sum) of f32[4]",
           "all_reduce(max) of f32[4]");
  mismatch(pick(sum({4}), sum({5})), "all_reduce(sum) of f32[4]",
           "all_reduce(sum) of f32[5]");
  mismatch(pick(sum({4}), sum({4}, DType::kI32)), "all_reduce(sum) of f32[4]",
           "all_reduce(sum) of i32[4]");
  mismatch(pick(sum({4}), gather), "all_reduce(sum) of f32[4]",
           "all_gather of f32[4]");
  CollectiveCall two = sum({4});
  two.inputs.push_back(zeros({1}));
  two.outputs.push_back(zeros({1}));
  mismatch(pick(sum({4}), two), "all_reduce(sum) of f32[4]",
           "all_reduce(sum) of f32[4], f32[1]");
  mismatch(
      [](std::int64_t rank) {
        CollectiveCall call{.kind = CollectiveKind::kBroadcast,
                            .root = rank,
                            .inputs = {zeros({4})},
                            .outputs = {zeros({4})}};
        return call;
      },
      "broadcast from index 0", "broadcast from index 1");
  mismatch(
      [](std::int64_t rank) {
        // Each expects the other's shard to be as large as its own.
        const Dims size{4 + rank};
        return CollectiveCall{.kind = CollectiveKind::kAllGather,
                              .inputs = {zeros(size)},
                              .outputs = {zeros(size), zeros(size)}};
      },
      "all_gather of f32[4]", "all_gather of f32[5]");
  mismatch(
      [](std::int64_t rank) {
        CollectiveCall call{.kind = CollectiveKind::kSendRecv};
        call.sends = {{1 - rank, {zeros({4})}}};
        if (rank == 0) call.receives = {{1, {zeros({4})}}};
        return call;
      },
      "send_recv of 1 messages, 16 bytes", "send_recv of 1 messages, 16 bytes");
}

TEST_CASE("collectives in another order are a mismatch") {
  const Group group = value_of(Group::world(2));
  const auto ends = run_ranks(2, {.timeout = 20s}, [&](Communicator& c) {
    const LocalTensor x = some_tensor(c.rank(), {4}, DType::kF32);
    std::vector<Result<AsyncTensor>> started;
    const auto reduce = [&] {
      started.push_back(all_reduce(c, x, ReduceOp::kSum, group));
    };
    if (c.rank() == 0) reduce();
    started.push_back(all_gather_tensor(c, x, 0, group));
    if (c.rank() == 1) reduce();
    for (const Result<AsyncTensor>& one : started) {
      if (!one) return Result<void>(fail(one.error()));
      if (const auto waited = one->wait(); !waited) {
        return Result<void>(fail(waited.error()));
      }
    }
    return Result<void>();
  });
  for (const Result<void>& end : ends) {
    REQUIRE_FALSE(end.has_value());
    CHECK(end.error().code == ErrorCode::kCollectiveMismatch);
  }
}

TEST_CASE("after a failure every call fails with it, and buffers are free") {
  ThreadWorld world(2, hasty());
  const Group group = value_of(Group::world(2));
  const auto one = world.communicator(0);
  const auto other = world.communicator(1);
  auto memory = std::make_shared<float>(1.0F);
  const std::weak_ptr<float> watch = memory;
  const auto x = LocalTensor::wrap(memory.get(), {1}, DType::kF32, memory);
  memory.reset();
  {
    const auto late = value_of(all_reduce(*one, x, ReduceOp::kSum, group));
    CHECK_CODE(late.wait(), ErrorCode::kTimeout);
    CHECK_CODE(late.wait(), ErrorCode::kTimeout);
    CHECK(late.is_done());
  }
  // The published data is withdrawn: the late rank finds no data to read.
  CHECK(watch.use_count() == 1);
  CHECK_CODE(all_reduce(*other, x, ReduceOp::kSum, group), ErrorCode::kTimeout);
  CHECK_CODE(one->barrier(group), ErrorCode::kTimeout);
  const Group self = value_of(Group::ranks({1}));
  CHECK_CODE(other->barrier(self), ErrorCode::kTimeout);
  CHECK(one->stats().abandoned == 0);
  CHECK(one->stats().parked == 0);
}

TEST_CASE("what was complete before a failure stays valid") {
  ThreadWorld world(2, hasty());
  const Group group = value_of(Group::world(2));
  const auto one = world.communicator(0);
  const auto other = world.communicator(1);
  const LocalTensor x = some_tensor(0, {70000}, DType::kF32);
  const auto a = value_of(all_gather_tensor(*one, x, 0, group));
  const auto b = value_of(all_gather_tensor(*other, x, 0, group));
  one->abort({ErrorCode::kOutOfMemory, "out of patience"});
  CHECK(a.wait().has_value());
  CHECK(b.wait().has_value());
  CHECK_CODE(one->barrier(group), ErrorCode::kRankFailed);
}

}  // namespace
}  // namespace shardprop

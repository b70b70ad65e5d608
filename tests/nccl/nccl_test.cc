// Tests of NCCL's own parts against a fake of it: set-up, cache, errors, abort.
#include <shardprop/collective/functional.h>
#include <shardprop/collective/thread_world.h>
#include <shardprop/nccl/nccl_world.h>

#include "collective/values.h"
#include "nccl/fake_nccl.h"
#include "nccl/nccl_worlds.h"
#include "support/result_checks.h"

#include <atomic>
#include <barrier>
#include <chrono>
#include <string>
#include <thread>

namespace shardprop {
namespace {

using namespace std::chrono_literals;
using testing::break_fake_nccl;
using testing::fake_counts;
using testing::run_nccl_ranks;
using testing::some_tensor;
using testing::value_of;

bool mentions(const Error& error, const std::string& text) {
  return to_string(error).find(text) != std::string::npos;
}

Result<void> sum(Communicator& communicator, const Group& group) {
  const LocalTensor mine = some_tensor(communicator.rank(), {8}, DType::kF32);
  const auto result = all_reduce(communicator, mine, ReduceOp::kSum, group,
                                 {.where = "step 1"});
  if (!result) return fail(result.error());
  if (const auto waited = result->wait(); !waited) return fail(waited.error());
  return {};
}

TEST_CASE("a partition gets one communicator a rank, destroyed in the end") {
  const Group one = value_of(Group::lists({{0, 1}, {2, 3}}));
  const Group other = value_of(Group::lists({{0, 1}, {3, 2}}));
  const testing::FakeCounts before = fake_counts();
  const auto ends =
      run_nccl_ranks(4, {.timeout = 20s}, [&](Communicator& c) -> Result<void> {
        CHECK(c.engine() == Engine::kNccl);
        for (int i = 0; i < 3; ++i) {
          for (const Group& group : {one, other}) {
            if (auto done = sum(c, group); !done) return done;
          }
        }
        return {};
      });
  for (const Result<void>& end : ends) CHECK(end.has_value());
  const testing::FakeCounts after = fake_counts();
  CHECK(after.made - before.made == 8);
  CHECK(after.destroyed - before.destroyed == 8);
  CHECK(after.aborted == before.aborted);
}

TEST_CASE("an error of NCCL aborts every communicator on every rank") {
  const Group world = value_of(Group::world(3));
  const Group pair = value_of(Group::ranks({0, 1}));
  const testing::FakeCounts before = fake_counts();
  std::atomic<int> ready = 0;
  const auto ends =
      run_nccl_ranks(3, {.timeout = 20s}, [&](Communicator& c) -> Result<void> {
        if (auto done = sum(c, world); !done) return done;
        if (c.rank() < 2) {
          if (auto done = sum(c, pair); !done) return done;
        }
        ++ready;
        while (ready < 3) std::this_thread::yield();
        // Only once, when nothing is on its way.
        if (c.rank() == 1) break_fake_nccl(nccl::kRemoteError);
        const auto broken = sum(c, world);
        CHECK_FALSE(broken.has_value());
        CHECK(c.failure().has_value());
        CHECK_CODE(c.barrier(world), broken.error().code);
        return broken;
      });
  break_fake_nccl(0);
  for (const Result<void>& end : ends) {
    REQUIRE_FALSE(end.has_value());
    CAPTURE(to_string(end.error()));
    CHECK(mentions(end.error(), "remote process exited"));
  }
  const testing::FakeCounts after = fake_counts();
  CHECK(after.made - before.made == 5);
  CHECK(after.aborted - before.aborted == 5);
}

TEST_CASE("a rank that never comes is named, and buffers are freed") {
  const Group world = value_of(Group::world(3));
  std::atomic<int> over = 0;
  const auto begin = std::chrono::steady_clock::now();
  const auto ends = run_nccl_ranks(3, {.timeout = 400ms},
                                   [&](Communicator& c) -> Result<void> {
                                     if (auto done = sum(c, world); !done)
                                       return done;
                                     if (c.rank() == 2) {
                                       while (over < 2)
                                         std::this_thread::sleep_for(1ms);
                                       return sum(c, world);
                                     }
                                     const auto late = sum(c, world);
                                     CHECK(c.stats().abandoned == 0);
                                     CHECK(c.stats().abandoned_bytes == 0);
                                     ++over;
                                     return late;
                                   });
  CHECK(std::chrono::steady_clock::now() - begin < 5s);
  for (const Result<void>& end : ends) {
    REQUIRE_FALSE(end.has_value());
    CAPTURE(to_string(end.error()));
    CHECK(mentions(end.error(), "rank 2 did not come"));
    CHECK(mentions(end.error(), "step 1"));
  }
}

TEST_CASE(
    "communicators are aborted side by side, whoever has kernels running") {
  const Group one = value_of(Group::world(2));
  const Group other = value_of(Group::lists({{1, 0}}));
  const testing::FakeCounts before = fake_counts();
  std::atomic<bool> over = false;
  const auto ends = run_nccl_ranks(
      2, {.timeout = 400ms}, [&](Communicator& c) -> Result<void> {
        for (const Group& group : {one, other}) {
          if (auto done = sum(c, group); !done) return done;
        }
        if (c.rank() == 1) {
          while (!over) std::this_thread::sleep_for(1ms);
          return {};
        }
        const LocalTensor mine = some_tensor(0, {8}, DType::kF32);
        const auto first = all_reduce(c, mine, ReduceOp::kSum, one);
        const auto second = all_reduce(c, mine, ReduceOp::kSum, other);
        REQUIRE((first && second));
        const auto late = first->wait();
        over = true;
        return late ? Result<void>() : fail(late.error());
      });
  REQUIRE_FALSE(ends[0].has_value());
  CHECK(mentions(ends[0].error(), "rank 1 did not come"));
  const testing::FakeCounts after = fake_counts();
  CHECK(after.aborted - before.aborted == 4);
  CHECK(after.stuck == before.stuck);
}

TEST_CASE("a peer that is gone is named where NCCL says that one is") {
  bool at_once = false;
  SUBCASE("when it is asked") {}
  SUBCASE("from the collective itself") { at_once = true; }
  const Group world = value_of(Group::world(3));
  std::barrier ready(3);
  std::barrier over(3);
  const auto ends =
      run_nccl_ranks(3, {.timeout = 2s}, [&](Communicator& c) -> Result<void> {
        const auto good = sum(c, world);
        ready.arrive_and_wait();
        if (c.rank() == 2) break_fake_nccl(nccl::kRemoteError, at_once);
        ready.arrive_and_wait();
        const auto broken = c.rank() == 2 ? Result<void>() : sum(c, world);
        over.arrive_and_wait();
        return good ? broken : good;
      });
  break_fake_nccl(0, at_once);
  for (const std::size_t rank : {0, 1}) {
    REQUIRE_FALSE(ends[rank].has_value());
    CAPTURE(to_string(ends[rank].error()));
    CHECK_CODE(ends[rank], ErrorCode::kEngine);
    CHECK(mentions(ends[rank].error(), "remote process exited"));
    CHECK(mentions(ends[rank].error(), "rank 2 did not come"));
  }
}

TEST_CASE("a timeout set later holds where a group is set up, too") {
  const Group world = value_of(Group::world(3));
  std::atomic<int> over = 0;
  const auto begin = std::chrono::steady_clock::now();
  const auto ends =
      run_nccl_ranks(3, {.timeout = 60s}, [&](Communicator& c) -> Result<void> {
        c.set_timeout(400ms);
        if (c.rank() == 2) {
          while (over < 2) std::this_thread::sleep_for(1ms);
          return {};
        }
        const auto late = sum(c, world);
        ++over;
        return late;
      });
  CHECK(std::chrono::steady_clock::now() - begin < 20s);
  for (const std::size_t rank : {0, 1}) {
    REQUIRE_FALSE(ends[rank].has_value());
    CAPTURE(to_string(ends[rank].error()));
    CHECK(mentions(ends[rank].error(), "set-up of NCCL"));
    CHECK(mentions(ends[rank].error(), "rank 2"));
  }
}

TEST_CASE("in checked mode mismatches are named before anything is queued") {
  const Group world = value_of(Group::world(2));
  const auto ends = run_nccl_ranks(2, {.timeout = 20s, .checked = true},
                                   [&](Communicator& c) -> Result<void> {
                                     if (auto done = sum(c, world); !done)
                                       return done;
                                     if (c.rank() == 0) return sum(c, world);
                                     return c.barrier(world);
                                   });
  for (const Result<void>& end : ends) {
    REQUIRE_FALSE(end.has_value());
    CHECK(mentions(end.error(), "calls all_reduce(sum) of f32[8] (step 1)"));
    CHECK(mentions(end.error(), "calls all_gather of u8[1] (barrier)"));
  }
}

TEST_CASE("what is missing is said") {
  ThreadWorld world(1);
  const auto missing =
      nccl_communicator(world.communicator(0), {.library = "libno_nccl.so"});
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().code == ErrorCode::kEngineMissing);
  CHECK(mentions(missing.error(), "libno_nccl.so"));
  // A library that is there and is not NCCL.
  const auto other =
      nccl_communicator(world.communicator(0), {.library = "libm.so.6"});
  REQUIRE_FALSE(other.has_value());
  CHECK(other.error().code == ErrorCode::kEngineMissing);
}

TEST_CASE("the real library works on one rank or says what is missing") {
  ThreadWorld world(1);
  const auto real = nccl_communicator(world.communicator(0));
  if (!real) {
    CAPTURE(to_string(real.error()));
    CHECK(real.error().code == ErrorCode::kEngineMissing);
    CHECK((mentions(real.error(), "NCCL") || mentions(real.error(), "driver") ||
           mentions(real.error(), "CUDA")));
    return;
  }
  Communicator& c = **real;
  MemoryOps& memory = c.memory_ops();
  const LocalTensor mine = some_tensor(3, {5, 7}, DType::kF32);
  const LocalTensor there = value_of(c.allocate({5, 7}, DType::kF32));
  REQUIRE(memory.transfer(mine, there).has_value());
  const Group group = value_of(Group::world(1));
  const LocalTensor sum = value_of(
      value_of(all_reduce(c, there.transpose(0, 1), ReduceOp::kSum, group))
          .wait());
  const LocalTensor packed = value_of(c.allocate({7, 5}, DType::kF32));
  REQUIRE(memory.copy(sum, packed).has_value());
  const LocalTensor back = value_of(LocalTensor::empty({7, 5}, DType::kF32));
  REQUIRE(memory.transfer(packed, back).has_value());
  CHECK(testing::same_bits(back, mine.transpose(0, 1)));
}

}  // namespace
}  // namespace shardprop

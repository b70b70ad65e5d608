// Results in flight wait once and late, and hold up no other rank.
#include <shardprop/collective/functional.h>
#include <shardprop/collective/thread_world.h>

#include "collective/values.h"
#include "collective/worlds.h"
#include "support/result_checks.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace shardprop {
namespace {

using namespace std::chrono_literals;
using testing::concatenated;
using testing::numbers_of;
using testing::on_ranks;
using testing::reduced;
using testing::same_bits;
using testing::some_tensor;
using testing::value_of;

TEST_CASE("views of a result do not wait, its first use does") {
  const Group group = value_of(Group::world(2));
  std::atomic<bool> viewed = false;
  on_ranks(2, [&](Communicator& communicator) {
    const LocalTensor mine =
        some_tensor(communicator.rank(), {2, 3}, DType::kI32);
    if (communicator.rank() == 1) {
      // Until the other one has made its views.
      while (!viewed) std::this_thread::yield();
    }
    const AsyncTensor whole =
        value_of(all_gather_tensor(communicator, mine, 0, group));
    const AsyncTensor last = whole.narrow(0, 3, 1);
    const AsyncTensor turned = whole.transpose(0, 1).narrow(1, 0, 1);
    const AsyncTensor flat = whole.reshaped({12});
    CHECK(flat.rank() == 1);
    CHECK(last.sizes() == Dims{1, 3});
    CHECK(turned.strides() == Dims{1, 3});
    CHECK(flat.numel() == 12);
    if (communicator.rank() == 0) {
      CHECK_FALSE(whole.is_done());
      viewed = true;
    }
    const LocalTensor expected =
        concatenated({some_tensor(0, {2, 3}, DType::kI32),
                      some_tensor(1, {2, 3}, DType::kI32)},
                     0);
    CHECK(same_bits(value_of(last.wait()), expected.narrow(0, 3, 1)));
    CHECK(whole.is_done());
    CHECK(same_bits(value_of(whole.wait()), expected));
    CHECK(same_bits(value_of(flat.wait()), expected.reshaped({12})));
    CHECK(same_bits(value_of(turned.wait()),
                    expected.transpose(0, 1).narrow(1, 0, 1)));
  });
}

TEST_CASE("a result that is there waits for nothing") {
  const AsyncTensor there(some_tensor(0, {2}, DType::kF32));
  CHECK(there.is_done());
  CHECK(numbers_of(value_of(there.wait())).size() == 2);
}

TEST_CASE("many collectives may be under way at once") {
  const Group group = value_of(Group::world(3));
  on_ranks(3, [&](Communicator& communicator) {
    std::vector<AsyncTensor> results;
    for (int i = 0; i < 50; ++i) {
      const LocalTensor mine =
          some_tensor(communicator.rank() + i, {40 * i}, DType::kF32);
      results.push_back(
          value_of(all_reduce(communicator, mine, ReduceOp::kSum, group)));
    }
    // In any order.
    for (int i = 49; i >= 0; --i) {
      std::vector<LocalTensor> inputs;
      for (int r = 0; r < 3; ++r) {
        inputs.push_back(some_tensor(r + i, {40 * i}, DType::kF32));
      }
      CHECK(same_bits(value_of(results[static_cast<std::size_t>(i)].wait()),
                      reduced(ReduceOp::kSum, inputs)));
    }
  });
}

TEST_CASE("ranks do each other's copies, so that none is waited for") {
  // Rank 1 makes its call and goes elsewhere; rank 0 is not held up.
  const Group group = value_of(Group::world(2));
  std::atomic<bool> finished = false;
  on_ranks(2, [&](Communicator& communicator) {
    const LocalTensor mine =
        some_tensor(communicator.rank(), {200000}, DType::kF32);
    const AsyncTensor whole =
        value_of(all_gather_tensor(communicator, mine, 0, group));
    if (communicator.rank() == 0) {
      CHECK(whole.wait().has_value());
      finished = true;
    } else {
      while (!finished) std::this_thread::yield();
      // Rank 0 ran the tasks of both.
      CHECK(whole.is_done());
      CHECK(same_bits(value_of(whole.wait()).narrow(0, 200000, 200000), mine));
    }
  });
}

TEST_CASE("dropped results are parked, and reaped by later calls") {
  const Group group = value_of(Group::world(2));
  std::atomic<int> phase = 0;
  on_ranks(2, [&](Communicator& communicator) {
    auto memory = std::make_shared<std::vector<float>>(100000, 1.0F);
    const std::weak_ptr<std::vector<float>> watch = memory;
    const bool first = communicator.rank() == 0;
    while (!first && phase < 1) std::this_thread::yield();
    {
      const LocalTensor mine =
          LocalTensor::wrap(memory->data(), {100000}, DType::kF32, memory);
      memory.reset();
      CHECK(all_reduce(communicator, mine, ReduceOp::kSum, group).has_value());
    }
    if (first) {
      // The other one has not come: the buffers live on.
      CHECK(communicator.stats().parked == 1);
      CHECK_FALSE(watch.expired());
      phase = 1;
      while (phase < 2) std::this_thread::yield();
    } else {
      CHECK(communicator.stats().parked == 1);
      phase = 2;
    }
    CHECK(communicator.barrier(group).has_value());
    CHECK(communicator.barrier(group).has_value());
    CHECK(communicator.stats().parked == 0);
    CHECK(watch.expired());
  });
}

TEST_CASE("results outlive the communicator that made them") {
  const Group group = value_of(Group::world(2));
  std::vector<AsyncTensor> kept(2, AsyncTensor(LocalTensor()));
  on_ranks(2, [&](Communicator& communicator) {
    kept[static_cast<std::size_t>(communicator.rank())] =
        value_of(all_gather_tensor(
            communicator,
            some_tensor(communicator.rank(), {50000}, DType::kI32), 0, group));
  });
  CHECK(same_bits(value_of(kept[0].wait()), value_of(kept[1].wait())));
}

TEST_CASE("overlapping groups, each rank in its own order") {
  const Group rows = value_of(Group::lists({{0, 1}, {2, 3}}));
  const Group columns = value_of(Group::lists({{0, 2}, {1, 3}}));
  on_ranks(4, [&](Communicator& communicator) {
    const std::int64_t rank = communicator.rank();
    const LocalTensor mine = some_tensor(rank, {10}, DType::kF64);
    // Even ranks start the row first, odd ones the column.
    std::optional<AsyncTensor> row;
    std::optional<AsyncTensor> column;
    const auto start_row = [&] {
      row = value_of(all_reduce(communicator, mine, ReduceOp::kSum, rows));
    };
    if (rank % 2 == 0) start_row();
    column = value_of(all_reduce(communicator, mine, ReduceOp::kSum, columns));
    if (rank % 2 == 1) start_row();
    const auto expect = [](std::int64_t a, std::int64_t b) {
      return reduced(ReduceOp::kSum, {some_tensor(a, {10}, DType::kF64),
                                      some_tensor(b, {10}, DType::kF64)});
    };
    CHECK(same_bits(value_of(row->wait()),
                    expect(rank / 2 * 2, rank / 2 * 2 + 1)));
    CHECK(same_bits(value_of(column->wait()), expect(rank % 2, rank % 2 + 2)));
  });
}

TEST_CASE("the same ranks in another partition are a channel of their own") {
  const Group one = value_of(Group::lists({{0, 1}, {2, 3}}));
  const Group other = value_of(Group::ranks({0, 1}));
  on_ranks(4, [&](Communicator& communicator) {
    if (communicator.rank() > 1) return;
    const LocalTensor a = some_tensor(1, {3}, DType::kF32);
    const LocalTensor b = some_tensor(2, {5}, DType::kF32);
    // Crossed orders would mismatch in one channel.
    const bool first = communicator.rank() == 0;
    const auto x = value_of(all_reduce(communicator, first ? a : b,
                                       ReduceOp::kSum, first ? one : other));
    const auto y = value_of(all_reduce(communicator, first ? b : a,
                                       ReduceOp::kSum, first ? other : one));
    CHECK(x.wait().has_value());
    CHECK(y.wait().has_value());
  });
}

TEST_CASE("any number of ranks, many more than cores") {
  const Group group = value_of(Group::world(64));
  on_ranks(64, [&](Communicator& communicator) {
    for (int i = 0; i < 5; ++i) {
      const LocalTensor mine =
          some_tensor(communicator.rank(), {3, 2}, DType::kI64);
      const LocalTensor whole = value_of(
          value_of(all_gather_tensor(communicator, mine, 0, group)).wait());
      for (std::int64_t r = 0; r < 64; ++r) {
        CHECK(same_bits(whole.narrow(0, 3 * r, 3),
                        some_tensor(r, {3, 2}, DType::kI64)));
      }
    }
  });
}

TEST_CASE("the longest timeout is a timeout, not one that is over at once") {
  const Group world = value_of(Group::world(2));
  const auto ends =
      run_ranks(2, {.timeout = std::chrono::milliseconds::max()},
                [&](Communicator& c) -> Result<void> {
                  CHECK(c.timeout() > std::chrono::hours(24 * 365));
                  c.set_timeout(std::chrono::milliseconds::max());
                  CHECK(c.timeout() > std::chrono::hours(24 * 365));
                  if (c.rank() == 1) std::this_thread::sleep_for(20ms);
                  return c.barrier(world);
                });
  for (const Result<void>& end : ends) CHECK(end.has_value());
  ThreadWorld one(1);
  const auto c = one.communicator(0);
  c->set_timeout(std::chrono::milliseconds::min());
  CHECK(c->timeout() == 0ms);
}

// Keeps the calls it is given, in memory that was used before.
class UsedMemory final : public Communicator {
 public:
  UsedMemory() : Communicator(0, 2, Engine::kThreads, {}) {}
  Result<LocalTensor> allocate(const Dims& sizes, DType dtype) override {
    LocalTensor out = value_of(LocalTensor::empty(sizes, dtype));
    std::memset(out.data(), 0x5a, static_cast<std::size_t>(out.bytes()));
    return out;
  }
  void abort(const Error&) override {}
  std::vector<CollectiveCall> calls;

 protected:
  Result<std::shared_ptr<Work>> do_start(const Group&, Group::Place,
                                         CollectiveCall call) override {
    struct Done final : Work {
      bool is_done() override { return true; }
      Result<void> wait() override { return {}; }
    };
    calls.push_back(std::move(call));
    return std::make_shared<Done>();
  }
  void add_engine_stats(CommunicatorStats&) const override {}
};

TEST_CASE("a barrier sends no byte that nobody has written") {
  UsedMemory c;
  REQUIRE(c.barrier(value_of(Group::world(2))).has_value());
  REQUIRE(c.calls.size() == 1);
  REQUIRE(c.calls[0].inputs.size() == 1);
  CHECK(c.calls[0].inputs[0].data_as<std::uint8_t>()[0] == 0);
}

}  // namespace
}  // namespace shardprop

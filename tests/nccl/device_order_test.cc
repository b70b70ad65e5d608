// The order of work on a device: memory that the host may not touch, streams
// that wait for each other, and ranks that are gone and must not hold up
// others.
#include <shardprop/collective/adjoint.h>
#include <shardprop/collective/functional.h>
#include <shardprop/collective/thread_world.h>
#include <shardprop/execute/dlpack.h>

#include "collective/block_cache.h"
#include "collective/values.h"
#include "nccl/fake_device.h"
#include "nccl/fake_nccl.h"
#include "nccl/nccl_communicator.h"
#include "nccl/nccl_worlds.h"
#include "support/result_checks.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace shardprop {
namespace {

using namespace std::chrono_literals;
using testing::fake_counts;
using testing::FakeQueue;
using testing::kFakeDevice;
using testing::moved_back;
using testing::moved_to;
using testing::numbers_of;
using testing::run_nccl_ranks;
using testing::some_tensor;
using testing::tensor_of;
using testing::value_of;

bool names_it(const Error& error, const std::string& text) {
  return to_string(error).find(text) != std::string::npos;
}

FakeQueue& queue_of(Communicator& c) {
  return static_cast<FakeQueue&>(c.memory_ops());
}

Result<void> ending(const Result<AsyncTensor>& started) {
  if (!started) return fail(started.error());
  const auto waited = started->wait();
  return waited ? Result<void>() : fail(waited.error());
}

Result<void> sum_on_device(Communicator& c, const Group& group,
                           const std::string& where = "step 1") {
  const LocalTensor x = moved_to(c, some_tensor(c.rank(), {8}, DType::kF32));
  return ending(all_reduce(c, x, ReduceOp::kSum, group, {.where = where}));
}

// A step that takes its time.
testing::FakeStep slow_step() {
  return [begin = std::chrono::steady_clock::now()] {
    return std::chrono::steady_clock::now() > begin + 50ms;
  };
}

// --- one queue ---

TEST_CASE("work behind a collective of several stages sees its result") {
  // NCCL does not reduce i16: members exchange, reduce, and exchange again.
  const Group world = value_of(Group::world(3));
  const auto ends = run_nccl_ranks(
      3, {.timeout = 20s},
      [&](Communicator& c) -> Result<void> {
        const LocalTensor x =
            moved_to(c, some_tensor(c.rank(), {300}, DType::kI16));
        const LocalTensor out = value_of(c.allocate({300}, DType::kI16));
        const LocalTensor behind = value_of(c.allocate({300}, DType::kI16));
        CollectiveCall call{.kind = CollectiveKind::kAllReduce,
                            .op = ReduceOp::kSum,
                            .inputs = {x},
                            .outputs = {out}};
        const auto work = c.start(world, std::move(call));
        REQUIRE(work.has_value());
        REQUIRE(c.memory_ops().copy(out, behind).has_value());
        REQUIRE(c.memory_ops().finish().has_value());
        CHECK((*work)->is_done());
        std::vector<LocalTensor> terms;
        for (int r = 0; r < 3; ++r) {
          terms.push_back(some_tensor(r, {300}, DType::kI16));
        }
        CHECK(testing::same_bits(moved_back(c, behind),
                                 testing::reduced(ReduceOp::kSum, terms)));
        return {};
      },
      kFakeDevice);
  for (const Result<void>& end : ends) CHECK(end.has_value());
}

TEST_CASE("the least and the largest of NaN are NaN on NCCL, too") {
  const Group world = value_of(Group::world(2));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
    const auto ends = run_nccl_ranks(
        2, {.timeout = 20s},
        [&](Communicator& c) -> Result<void> {
          const bool first = c.rank() == 0;
          const LocalTensor x =
              moved_to(c, tensor_of({first ? nan : 1, first ? 1 : nan, 2, 3},
                                    {4}, DType::kF32));
          const auto all = value_of(all_reduce(c, x, op, world));
          const testing::Numbers numbers =
              numbers_of(moved_back(c, value_of(all.wait())));
          CHECK(std::isnan(numbers[0]));
          CHECK(std::isnan(numbers[1]));
          CHECK(numbers[2] == 2);
          const auto share =
              value_of(reduce_scatter_tensor(c, x, op, 0, world));
          const testing::Numbers mine =
              numbers_of(moved_back(c, value_of(share.wait())));
          CHECK(std::isnan(mine[0]) == first);
          return {};
        },
        kFakeDevice);
    for (const Result<void>& end : ends) CHECK(end.has_value());
  }
}

// --- streams of others ---

dlpack::Owned managed(const LocalTensor& tensor, void* stream) {
  return value_of(
      export_dlpack(tensor, {.producer = stream, .consumer = stream}));
}

TEST_CASE("an imported tensor is read after its producer has written it") {
  FakeQueue theirs(kFakeDevice);
  FakeQueue ours(kFakeDevice);
  const LocalTensor tensor = value_of(theirs.allocate({4}, DType::kF32));
  const LocalTensor copied = value_of(ours.allocate({4}, DType::kF32));
  const LocalTensor host = value_of(LocalTensor::zeros({4}, DType::kF32));
  const float three = 3;
  const float nine = 9;
  theirs.push(slow_step());
  REQUIRE(theirs.fill(tensor, &three).has_value());
  {
    const LocalTensor held =
        value_of(import_dlpack(managed(tensor, theirs.stream()).release(),
                               DlpackStreams::into(ours, theirs.stream())));
    ours.push(slow_step());
    REQUIRE(ours.copy(held, copied, 1).has_value());
  }
  // The producer has its memory back and writes it again.
  REQUIRE(theirs.fill(tensor, &nine).has_value());
  REQUIRE(ours.transfer(copied, host).has_value());
  CHECK(numbers_of(host) == testing::Numbers{3, 3, 3, 3});
  REQUIRE(theirs.finish().has_value());
}

TEST_CASE("an exported tensor is read before its memory is used again") {
  FakeQueue theirs(kFakeDevice);
  FakeQueue ours(kFakeDevice);
  const float three = 3;
  const float nine = 9;
  const LocalTensor copied = value_of(theirs.allocate({4}, DType::kF32));
  const LocalTensor host = value_of(LocalTensor::zeros({4}, DType::kF32));
  LocalTensor tensor = value_of(ours.allocate({4}, DType::kF32));
  const void* const block = tensor.data();
  ours.push(slow_step());
  REQUIRE(ours.fill(tensor, &three).has_value());
  dlpack::Owned out = value_of(
      export_dlpack(tensor, DlpackStreams::out_of(ours, theirs.stream())));
  tensor = LocalTensor();
  theirs.push(slow_step());
  const LocalTensor seen = LocalTensor::wrap(out->tensor.data, {4}, DType::kF32,
                                             nullptr, kFakeDevice);
  REQUIRE(theirs.copy(seen, copied, 1).has_value());
  out.reset();
  const LocalTensor next = value_of(ours.allocate({4}, DType::kF32));
  CHECK(next.data() == block);
  REQUIRE(ours.fill(next, &nine).has_value());
  REQUIRE(theirs.transfer(copied, host).has_value());
  CHECK(numbers_of(host) == testing::Numbers{3, 3, 3, 3});
  REQUIRE(ours.finish().has_value());
}

// --- memory ---

TEST_CASE("a dropped tensor waits for no kernel") {
  const Group world = value_of(Group::world(2));
  std::atomic<bool> over = false;
  const int stuck_before = testing::stuck_frees();
  const auto ends = run_nccl_ranks(
      2, {.timeout = 800ms},
      [&](Communicator& c) -> Result<void> {
        if (auto done = sum_on_device(c, world); !done) return done;
        if (c.rank() == 1) {
          while (!over) std::this_thread::sleep_for(1ms);
          return sum_on_device(c, world);
        }
        const LocalTensor x =
            moved_to(c, some_tensor(c.rank(), {8}, DType::kF32));
        const auto hangs = all_reduce(c, x, ReduceOp::kSum, world);
        // The kernel waits for rank 1, which does not come.
        for (int i = 0; i < 4; ++i) {
          const LocalTensor dropped =
              value_of(c.allocate({1 << i, 100}, DType::kF32));
        }
        const Result<void> late = ending(hangs);
        over = true;
        return late;
      },
      kFakeDevice);
  REQUIRE_FALSE(ends[0].has_value());
  CHECK(names_it(ends[0].error(), "rank 1 did not come"));
  CHECK(testing::stuck_frees() == stuck_before);
}

TEST_CASE("a queue uses its blocks again and gives them back when it is full") {
  constexpr std::size_t kKiB = 1024;
  FakeQueue queue(kFakeDevice, 64 * kKiB);
  const auto bytes = [&](std::int64_t kib) {
    return queue.allocate({kib * 1024}, DType::kU8);
  };
  const void* first = nullptr;
  {
    const LocalTensor tensor = value_of(bytes(16));
    first = tensor.data();
  }
  CHECK(queue.cached_bytes() == 16 * kKiB);
  // A block serves tensors of its size or a little less, and no small ones.
  CHECK(value_of(bytes(16)).data() == first);
  CHECK(value_of(bytes(15)).data() == first);
  CHECK(value_of(bytes(1)).data() != first);
  // 17 KiB are cached. 64 KiB are there only without them.
  CHECK(queue.cached_bytes() == 17 * kKiB);
  {
    const LocalTensor all = value_of(bytes(64));
    CHECK(queue.cached_bytes() == 0);
    CHECK_CODE(bytes(1), ErrorCode::kOutOfMemory);
  }
  CHECK(bytes(64).has_value());
}

// Returns new memory of the host in which every byte is 0x5a. It is likely to
// be where memory of this size was freed last.
LocalTensor marked_memory(std::int64_t bytes) {
  const LocalTensor memory = value_of(LocalTensor::empty({bytes}, DType::kU8));
  std::memset(memory.data(), 0x5a, static_cast<std::size_t>(bytes));
  return memory;
}

bool still_marked(const LocalTensor& memory) {
  const auto* const at = memory.data_as<const std::uint8_t>();
  return std::all_of(at, at + memory.numel(),
                     [](std::uint8_t byte) { return byte == 0x5a; });
}

TEST_CASE("a tensor may be dropped while work on it is queued") {
  FakeQueue queue({});
  queue.push(slow_step());
  {
    const LocalTensor tensor = value_of(queue.allocate({32}, DType::kU8));
    const std::byte zero{0};
    REQUIRE(queue.fill(tensor, &zero).has_value());
  }
  const LocalTensor next = marked_memory(32);
  REQUIRE(queue.finish().has_value());
  CHECK(still_marked(next));
}

TEST_CASE("a barrier that fails at once leaves no work on freed memory") {
  const Group world = value_of(Group::world(1));
  const auto ends =
      run_nccl_ranks(1, {.timeout = 20s}, [&](Communicator& c) -> Result<void> {
        c.abort({ErrorCode::kRankFailed, "a rank gave up"});
        queue_of(c).push(slow_step());
        CHECK_CODE(c.barrier(world), ErrorCode::kRankFailed);
        std::vector<LocalTensor> next;
        for (int i = 0; i < 8; ++i) next.push_back(marked_memory(1));
        REQUIRE(c.memory_ops().finish().has_value());
        CHECK(std::all_of(next.begin(), next.end(), still_marked));
        return {};
      });
  CHECK(ends[0].has_value());
}

TEST_CASE("a tensor may outlive the queue it came from") {
  LocalTensor tensor;
  {
    FakeQueue queue(kFakeDevice);
    tensor = value_of(queue.allocate({100}, DType::kF32));
  }
  tensor = LocalTensor();
}

TEST_CASE("after an abort buffers are freed, or counted if the device hangs") {
  const Group world = value_of(Group::world(2));
  for (const bool hangs : {false, true}) {
    CAPTURE(hangs);
    std::atomic<bool> over = false;
    const auto ends = run_nccl_ranks(
        2, {.timeout = 400ms},
        [&](Communicator& c) -> Result<void> {
          if (auto done = sum_on_device(c, world); !done) return done;
          if (c.rank() == 1) {
            while (!over) std::this_thread::sleep_for(1ms);
            return {};
          }
          auto memory = std::make_shared<std::vector<float>>(8);
          const std::weak_ptr<std::vector<float>> watch = memory;
          const LocalTensor own = moved_to(c, some_tensor(0, {8}, DType::kF32));
          const LocalTensor x = LocalTensor::wrap(own.data(), {8}, DType::kF32,
                                                  memory, kFakeDevice);
          memory.reset();
          queue_of(c).set_hangs(hangs);
          Result<void> late;
          {
            CollectiveCall call{.kind = CollectiveKind::kAllReduce,
                                .inputs = {x},
                                .outputs = {x}};
            late = c.run(world, std::move(call));
          }
          const CommunicatorStats stats = c.stats();
          CHECK(stats.abandoned == (hangs ? 1 : 0));
          CHECK(stats.abandoned_bytes == (hangs ? 64 : 0));
          // `x` itself, and the input and the output of the call.
          CHECK(watch.use_count() == (hangs ? 3 : 1));
          queue_of(c).set_hangs(false);
          over = true;
          return late;
        },
        kFakeDevice);
    REQUIRE_FALSE(ends[0].has_value());
    CHECK(names_it(ends[0].error(), "rank 1 did not come"));
  }
}

// --- groups of NCCL that stay open ---

// The first world fails by `break_it` in the midst of its posts; a second world
// on the same threads must work.
void check_no_group_stays_open(
    const std::function<void(Communicator&)>& break_it, ErrorCode code) {
  const Group world = value_of(Group::world(2));
  ThreadWorld second(2, {.timeout = 5s});
  std::barrier both(2);
  const auto ends = run_nccl_ranks(
      2, {.timeout = 5s},
      [&](Communicator& c) -> Result<void> {
        const Result<void> good = sum_on_device(c, world);
        const LocalTensor x =
            moved_to(c, some_tensor(c.rank(), {8}, DType::kI16));
        const LocalTensor out = value_of(c.allocate({8}, DType::kI16));
        both.arrive_and_wait();
        break_it(c);
        both.arrive_and_wait();
        Result<void> broken;
        try {
          broken = c.run(world, {.kind = CollectiveKind::kAllReduce,
                                 .inputs = {x},
                                 .outputs = {out}});
        } catch (const InternalError&) {
          broken = fail(ErrorCode::kRankFailed, "threw");
        }
        both.arrive_and_wait();
        testing::break_fake_nccl(0, true);
        both.arrive_and_wait();
        CHECK(good.has_value());
        // The first rank that fails may already have notified the other.
        REQUIRE_FALSE(broken.has_value());
        CHECK((broken.error().code == code ||
               broken.error().code == ErrorCode::kRankFailed));
        CHECK(testing::fake_group_depth() == 0);
        const auto again = nccl::nccl_communicator_on(
            testing::fake_nccl(), std::make_unique<FakeQueue>(kFakeDevice),
            second.communicator(c.rank()), {.timeout = 5s});
        return sum_on_device(*again, world);
      },
      kFakeDevice);
  for (const Result<void>& end : ends) {
    if (!end) FAIL_CHECK(to_string(end.error()));
  }
}

TEST_CASE("a group of NCCL is closed after memory ran out in it") {
  check_no_group_stays_open(
      [](Communicator& c) {
        queue_of(c).set_fault([]() -> Result<void> {
          return fail(ErrorCode::kOutOfMemory, "the device is full");
        });
      },
      ErrorCode::kOutOfMemory);
}

TEST_CASE("a group of NCCL is closed after a call in it failed") {
  check_no_group_stays_open(
      [](Communicator&) { testing::break_fake_nccl(5, true); },
      ErrorCode::kEngine);
}

TEST_CASE("a group of NCCL is closed after an exception in it") {
  check_no_group_stays_open(
      [](Communicator& c) {
        queue_of(c).set_fault([]() -> Result<void> { throw std::bad_alloc(); });
      },
      ErrorCode::kOutOfMemory);
  check_no_group_stays_open(
      [](Communicator& c) {
        queue_of(c).set_fault(
            []() -> Result<void> { throw InternalError("a bug"); });
      },
      ErrorCode::kRankFailed);
}

// --- devices ---

TEST_CASE("communicators are set up on the device of their queue") {
  const Group world = value_of(Group::world(2));
  static_cast<void>(testing::take_fake_devices());
  constexpr Device kSecond{DeviceType::kCuda, 1};
  const auto ends = run_nccl_ranks(
      2, {.timeout = 20s},
      [&](Communicator& c) -> Result<void> {
        // A framework works on another GPU.
        testing::set_fake_current_device(3);
        // Memory of others: nothing is allocated by the communicator.
        FakeQueue other(kSecond);
        const LocalTensor x = value_of(other.allocate({8}, DType::kF32));
        const float one = 1;
        REQUIRE(other.fill(x, &one).has_value());
        REQUIRE(other.finish().has_value());
        CollectiveCall call{
            .kind = CollectiveKind::kAllReduce, .inputs = {x}, .outputs = {x}};
        const Result<void> end = c.run(world, std::move(call));
        CHECK(testing::fake_current_device() == 3);
        return end;
      },
      kSecond);
  for (const Result<void>& end : ends) CHECK(end.has_value());
  CHECK(testing::take_fake_devices() == std::vector<int>{1, 1});
}

// --- order ---

TEST_CASE("communicators are destroyed in one order on all ranks") {
  static_cast<void>(testing::take_destroyed());
  std::vector<Group> groups;
  for (const auto& lists : std::vector<std::vector<Group::Ranks>>{
           {{0, 1, 2}}, {{1, 0, 2}}, {{2, 1, 0}}, {{0, 2, 1}}, {{1, 2, 0}}}) {
    groups.push_back(value_of(Group::lists(lists)));
  }
  const auto ends = run_nccl_ranks(
      3, {.timeout = 20s},
      [&](Communicator& c) -> Result<void> {
        // Ranks 0 and 2 have a group of their own in between.
        for (std::size_t g = 0; g < groups.size(); ++g) {
          if (auto done = sum_on_device(c, groups[g]); !done) return done;
          if (g == 1 && c.rank() != 1) {
            const Group pair = value_of(Group::ranks({0, 2}));
            if (auto done = sum_on_device(c, pair); !done) return done;
          }
        }
        return {};
      },
      kFakeDevice);
  for (const Result<void>& end : ends) CHECK(end.has_value());
  const auto destroyed = testing::take_destroyed();
  REQUIRE(destroyed.size() == 3);
  for (const std::vector<std::int64_t>& order : destroyed) {
    CHECK(std::is_sorted(order.begin(), order.end()));
  }
}

TEST_CASE("groups in opposite orders end in time, with both calls named") {
  const Group one = value_of(Group::world(2));
  const Group other = value_of(Group::lists({{1, 0}}));
  for (const bool checked : {false, true}) {
    CAPTURE(checked);
    const testing::FakeCounts before = fake_counts();
    const auto begin = std::chrono::steady_clock::now();
    const auto ends = run_nccl_ranks(
        2, {.timeout = 1500ms, .checked = checked},
        [&](Communicator& c) -> Result<void> {
          // The set-up comes in one order.
          for (const Group& group : {one, other}) {
            if (auto done = sum_on_device(c, group); !done) return done;
          }
          const bool first = c.rank() == 0;
          const LocalTensor x = moved_to(c, some_tensor(0, {8}, DType::kF32));
          const auto a = all_reduce(c, x, ReduceOp::kSum, first ? one : other,
                                    {.where = "this"});
          const auto b = all_reduce(c, x, ReduceOp::kSum, first ? other : one,
                                    {.where = "that"});
          const Result<void> end = ending(a);
          return end ? ending(b) : end;
        },
        kFakeDevice);
    CHECK(std::chrono::steady_clock::now() - begin < 10s);
    for (const Result<void>& end : ends) {
      REQUIRE_FALSE(end.has_value());
      CAPTURE(to_string(end.error()));
      CHECK(names_it(end.error(), "one order on all ranks"));
      CHECK(names_it(end.error(), "(this)"));
      CHECK(names_it(end.error(), "{0,1}"));
      CHECK(names_it(end.error(), "{1,0}"));
    }
    const testing::FakeCounts after = fake_counts();
    CHECK(after.aborted - before.aborted == 4);
    CHECK(after.stuck == before.stuck);
  }
}

// --- the bootstrap ---

// Times out and keeps all tensors of its calls, as MPI does.
class LateBootstrap final : public Communicator {
 public:
  LateBootstrap() : Communicator(1, 2, Engine::kThreads, {.timeout = 50ms}) {}
  void abort(const Error&) override {}
  const std::vector<LocalTensor>& kept() const { return kept_; }

 protected:
  Result<std::shared_ptr<Work>> do_start(const Group&, Group::Place,
                                         CollectiveCall call) override {
    for (const auto* tensors : {&call.inputs, &call.outputs}) {
      kept_.insert(kept_.end(), tensors->begin(), tensors->end());
    }
    for (const auto* messages : {&call.sends, &call.receives}) {
      for (const Message& message : *messages) {
        kept_.insert(kept_.end(), message.pieces.begin(), message.pieces.end());
      }
    }
    struct Late final : Work {
      bool is_done() override { return false; }
      Result<void> wait() override {
        return fail(ErrorCode::kTimeout, "rank 0 did not come");
      }
    };
    return std::make_shared<Late>();
  }
  void add_engine_stats(CommunicatorStats&) const override {}

 private:
  std::vector<LocalTensor> kept_;
};

TEST_CASE("all that is given to the bootstrap has an owner") {
  const Group world = value_of(Group::world(2));
  for (const bool checked : {false, true}) {
    auto bootstrap = std::make_unique<LateBootstrap>();
    const LateBootstrap& late = *bootstrap;
    const auto c = nccl::nccl_communicator_on(
        testing::fake_nccl(), std::make_unique<FakeQueue>(kFakeDevice),
        std::move(bootstrap), {.timeout = 50ms, .checked = checked});
    const LocalTensor x = value_of(c->allocate({4}, DType::kF32));
    CHECK_CODE(all_reduce(*c, x, ReduceOp::kSum, world), ErrorCode::kTimeout);
    REQUIRE_FALSE(late.kept().empty());
    for (const LocalTensor& tensor : late.kept()) {
      // The engine writes it later than anyone waits.
      CHECK(tensor.owner() != nullptr);
      const std::byte late_byte{0x5a};
      CHECK(host_memory_ops().fill(tensor, &late_byte).has_value());
    }
  }
}

}  // namespace
}  // namespace shardprop

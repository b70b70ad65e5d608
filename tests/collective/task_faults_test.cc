// Tasks of a collective on threads that fail or throw: every member reports the
// fault, and no member waits for a task that no thread runs.
#include <shardprop/base/error.h>
#include <shardprop/collective/functional.h>
#include <shardprop/collective/thread_world.h>

#include "collective/device_queue.h"
#include "collective/thread_communicator.h"
#include "collective/values.h"
#include "support/result_checks.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>

namespace shardprop {
namespace {

using namespace std::chrono_literals;
using testing::value_of;

constexpr std::int64_t kTaskRanks = 3;
constexpr auto kTaskTimeout = 500ms;
constexpr auto kTaskInTime = 10s;
constexpr Device kTaskDevice{DeviceType::kCuda, 0};

// A task calls it in place of its work.
using TaskFault = std::function<Result<void>()>;

// A queue over host memory that does its work at once. The tasks that its rank
// runs end with the fault.
class FaultyQueue final : public collective::DeviceQueue {
 public:
  explicit FaultyQueue(TaskFault fault) : fault_(std::move(fault)) {}

  Result<void> on_device(const std::function<Result<void>()>& work) override {
    return work();
  }
  Device device() const override { return kTaskDevice; }
  Result<LocalTensor> allocate(const Dims& sizes, DType dtype) override {
    const LocalTensor made = value_of(LocalTensor::empty(sizes, dtype));
    return LocalTensor::wrap(made.data(), sizes, dtype, made.owner(),
                             kTaskDevice);
  }
  Result<void> copy(const LocalTensor&, const LocalTensor&, double) override {
    return fault_ ? fault_() : Result<void>();
  }
  Result<void> reduce(ReduceOp, std::span<const LocalTensor>,
                      const LocalTensor&, double) override {
    return fault_ ? fault_() : Result<void>();
  }
  Result<void> fill(const LocalTensor&, const void*) override { return {}; }
  Result<void> transfer(const LocalTensor&, const LocalTensor&) override {
    return {};
  }
  Result<void> finish() override { return {}; }
  Result<std::unique_ptr<Mark>> mark() override {
    return std::make_unique<Reached>();
  }
  Result<void> follow(const Mark&) override { return {}; }

 private:
  struct Reached final : Mark {
    Result<bool> reached() override { return true; }
  };
  TaskFault fault_;
};

std::vector<Result<void>> with_fault(
    std::int64_t guilty, const TaskFault& fault,
    const std::function<Result<void>(Communicator&)>& body) {
  std::vector<std::shared_ptr<collective::DeviceQueue>> queues;
  for (std::int64_t r = 0; r < kTaskRanks; ++r) {
    queues.push_back(
        std::make_shared<FaultyQueue>(r == guilty ? fault : TaskFault()));
  }
  return run_ranks(
      collective::thread_ranks_on(std::move(queues), {.timeout = kTaskTimeout}),
      body);
}

bool has_text(const Error& error, const std::string& text) {
  return to_string(error).find(text) != std::string::npos;
}

void wait_until(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + kTaskInTime;
  while (!holds() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
}

// Every member must end with the code and the text, in time, and so must its
// next call.
void check_task_fault(std::int64_t elements, const TaskFault& fault,
                      ErrorCode code, const std::string& text) {
  const Group world = value_of(Group::world(kTaskRanks));
  for (std::int64_t guilty = 0; guilty < kTaskRanks; ++guilty) {
    CAPTURE(guilty);
    CAPTURE(elements);
    std::atomic<int> came = 0;
    std::atomic<int> begun = 0;
    const auto begin = std::chrono::steady_clock::now();
    const TaskFault seen = [&] {
      ++begun;
      return fault();
    };
    const auto ends =
        with_fault(guilty, seen, [&](Communicator& c) -> Result<void> {
          const LocalTensor x = value_of(c.allocate({elements}, DType::kF32));
          // The guilty rank comes last and is the first to run a task.
          const bool mine = c.rank() == guilty;
          if (mine) wait_until([&] { return came == kTaskRanks - 1; });
          const auto sum = all_reduce(c, x, ReduceOp::kSum, world);
          ++came;
          if (!mine) wait_until([&] { return begun > 0; });
          const Result<void> end = [&]() -> Result<void> {
            if (!sum) return fail(sum.error());
            const auto waited = sum->wait();
            return waited ? Result<void>() : fail(waited.error());
          }();
          if (!end) CHECK_CODE(c.barrier(world), end.error().code);
          return end;
        });
    CHECK(std::chrono::steady_clock::now() - begin < kTaskInTime);
    for (const Result<void>& end : ends) {
      REQUIRE_FALSE(end.has_value());
      CAPTURE(to_string(end.error()));
      CHECK(end.error().code == code);
      CHECK(has_text(end.error(), text));
    }
  }
}

// Up to 64 KiB, the last member runs all tasks itself.
constexpr std::int64_t kSmallCall = 16;
constexpr std::int64_t kLargeCall = 100000;

TEST_CASE("a task that fails is everyone's error") {
  const TaskFault fails = []() -> Result<void> {
    return fail(ErrorCode::kEngine, "the device is on fire");
  };
  check_task_fault(kSmallCall, fails, ErrorCode::kEngine,
                   "the device is on fire");
  check_task_fault(kLargeCall, fails, ErrorCode::kEngine,
                   "the device is on fire");
}

TEST_CASE("a task that throws is everyone's error") {
  const TaskFault throws = []() -> Result<void> {
    throw InternalError("a kernel refuses its arguments");
  };
  check_task_fault(kSmallCall, throws, ErrorCode::kRankFailed,
                   "a kernel refuses its arguments");
  check_task_fault(kLargeCall, throws, ErrorCode::kRankFailed,
                   "a kernel refuses its arguments");
}

TEST_CASE("a task that throws wakes members that sleep until it is finished") {
  const TaskFault throws_late = []() -> Result<void> {
    // By now the others have run their own tasks and sleep.
    std::this_thread::sleep_for(100ms);
    throw std::bad_alloc();
  };
  check_task_fault(kLargeCall, throws_late, ErrorCode::kOutOfMemory,
                   "no memory is left");
}

TEST_CASE("a dropped collective whose task fails is not lost") {
  const Group world = value_of(Group::world(kTaskRanks));
  std::atomic<int> begun = 0;
  const TaskFault fails = [&begun]() -> Result<void> {
    ++begun;
    return fail(ErrorCode::kEngine, "the device is on fire");
  };
  std::atomic<int> dropped = 0;
  const auto ends = with_fault(0, fails, [&](Communicator& c) -> Result<void> {
    const LocalTensor x = value_of(c.allocate({kLargeCall}, DType::kF32));
    REQUIRE(all_reduce(c, x, ReduceOp::kSum, world).has_value());
    ++dropped;
    wait_until([&] { return dropped == kTaskRanks; });
    // Rank 0 runs the tasks of the dropped call.
    if (c.rank() != 0) wait_until([&] { return begun > 0; });
    return c.barrier(world);
  });
  for (const Result<void>& end : ends) {
    REQUIRE_FALSE(end.has_value());
    CHECK(end.error().code == ErrorCode::kEngine);
    CHECK(has_text(end.error(), "the device is on fire"));
  }
}

TEST_CASE("a wait that fails has released every reference of its call") {
  const Group world = value_of(Group::world(2));
  const LocalTensor memory = value_of(LocalTensor::zeros({8}, DType::kF32));
  std::atomic<bool> released = false;
  std::atomic<bool> published = false;
  bool released_before_the_end = false;
  const auto ends =
      run_ranks(2, {.timeout = 10s}, [&](Communicator& c) -> Result<void> {
        if (c.rank() == 1) {
          wait_until([&] { return published.load(); });
          return c.barrier(world);
        }
        // Destroying the owner takes a while.
        std::shared_ptr<void> owner(memory.data(), [&](void*) {
          std::this_thread::sleep_for(100ms);
          released = true;
        });
        CollectiveCall call{.kind = CollectiveKind::kAllReduce};
        call.inputs = {LocalTensor::wrap(memory.data(), {8}, DType::kF32,
                                         std::move(owner))};
        call.outputs = {value_of(LocalTensor::zeros({8}, DType::kF32))};
        auto pending = c.start(world, std::move(call));
        published = true;
        if (!pending) return fail(pending.error());
        const Result<void> end = (*pending)->wait();
        released_before_the_end = released;
        return end;
      });
  CHECK_CODE(ends[0], ErrorCode::kCollectiveMismatch);
  CHECK_CODE(ends[1], ErrorCode::kCollectiveMismatch);
  CHECK(released_before_the_end);
}

TEST_CASE("an output over another rank's input is everyone's error") {
  // The check of arguments sees one rank's tensors only.
  for (const std::int64_t count : {std::int64_t{8}, kLargeCall}) {
    CAPTURE(count);
    const Group world = value_of(Group::world(2));
    const LocalTensor shared =
        value_of(LocalTensor::zeros({3 * count}, DType::kF32));
    const auto ends =
        run_ranks(2, {.timeout = 10s}, [&](Communicator& c) -> Result<void> {
          const LocalTensor own =
              value_of(LocalTensor::zeros({2 * count}, DType::kF32));
          CollectiveCall call{.kind = CollectiveKind::kAllGather};
          if (c.rank() == 0) {
            call.inputs = {shared.narrow(0, 0, count)};
            call.outputs = {own.narrow(0, 0, count),
                            own.narrow(0, count, count)};
          } else {
            call.inputs = {own.narrow(0, 0, count)};
            call.outputs = {shared.narrow(0, 1, count),
                            shared.narrow(0, 2 * count, count)};
          }
          return c.run(world, std::move(call));
        });
    for (const Result<void>& end : ends) {
      REQUIRE_FALSE(end.has_value());
      CHECK(end.error().code == ErrorCode::kCollectiveOverlap);
    }
  }
}

}  // namespace
}  // namespace shardprop

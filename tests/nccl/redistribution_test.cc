// Redistributions of tensors on a device: over NCCL and over threads that share
// the device, both of them fakes; and on a GPU if there is one.
#include "execute/redistribution_jobs.h"
#include "nccl/fake_device.h"
#include "nccl/fake_memory.h"
#include "nccl/fake_nccl.h"
#include "nccl/nccl_worlds.h"

#include <shardprop/collective/functional.h>
#include <shardprop/collective/thread_world.h>
#include <shardprop/nccl/cuda_ranks.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using namespace std::chrono_literals;
using testing::cases;
using testing::value_of;
using Body = std::function<Result<void>(Communicator&)>;

std::vector<Result<void>> on_nccl(std::int64_t ranks, const Body& body) {
  return testing::run_nccl_ranks(ranks, {.timeout = 30s}, body,
                                 testing::kFakeDevice);
}

std::vector<Result<void>> sharing(std::int64_t ranks, const Body& body) {
  return run_ranks(testing::sharing_ranks(ranks, {}), body);
}

TEST_CASE("random redistributions on NCCL") {
  testing::check_redistributions(on_nccl, Engine::kNccl, cases(100));
}

TEST_CASE("random redistributions between meshes on NCCL") {
  testing::check_redistributions_between_meshes(on_nccl, Engine::kNccl,
                                                cases(40));
}

TEST_CASE("random redistributions on threads that share a device") {
  testing::check_redistributions(sharing, Engine::kThreads, cases(100));
}

TEST_CASE("random redistributions between meshes that share a device") {
  testing::check_redistributions_between_meshes(sharing, Engine::kThreads,
                                                cases(40));
}

TEST_CASE("collectives in place on a device") {
  const Group world = value_of(Group::world(3));
  const auto ends = sharing(3, [&](Communicator& c) -> Result<void> {
    MemoryOps& memory = c.memory_ops();
    std::vector<float> host(40000);
    const LocalTensor on_host =
        LocalTensor::wrap(host.data(), {200, 200}, DType::kF32);
    const LocalTensor x = value_of(c.allocate({200, 200}, DType::kF32));
    host.assign(host.size(), static_cast<float>(c.rank() + 1));
    REQUIRE(memory.transfer(on_host, x).has_value());
    auto sum = all_reduce(c, x, ReduceOp::kSum, world, {.out = x});
    REQUIRE(sum.has_value());
    REQUIRE(sum->wait().has_value());
    // Work that the rank queues after it sees the sum.
    REQUIRE(memory
                .reduce(ReduceOp::kSum, {&x, 1}, x,
                        0.5 * static_cast<double>(c.rank()))
                .has_value());
    auto last =
        broadcast(c, x.transpose(0, 1), 2, world, {.out = x.transpose(0, 1)});
    REQUIRE(last.has_value());
    REQUIRE(last->wait().has_value());
    REQUIRE(memory.transfer(x, on_host).has_value());
    CHECK(std::all_of(host.begin(), host.end(),
                      [](float value) { return value == 6; }));
    return {};
  });
  for (const Result<void>& end : ends) CHECK(end.has_value());
}

TEST_CASE("memory of the wrong kind is refused and harms nobody") {
  const Group world = value_of(Group::world(2));
  for (const auto& run : {&on_nccl, &sharing}) {
    const auto ends = (*run)(2, [&](Communicator& c) -> Result<void> {
      const LocalTensor host = value_of(LocalTensor::zeros({4}, DType::kF32));
      const auto refused =
          all_reduce(c, host, ReduceOp::kSum, world, {.out = host});
      REQUIRE_FALSE(refused.has_value());
      CHECK(refused.error().code == ErrorCode::kCollectiveDevice);
      const LocalTensor own = value_of(c.allocate({4}, DType::kF32));
      CHECK_CODE(c.memory_ops().copy(host, own), ErrorCode::kCollectiveDevice);
      return c.barrier(world);
    });
    for (const Result<void>& end : ends) CHECK(end.has_value());
  }
}

TEST_CASE("a rank that never comes is named by those that share a device") {
  const Group world = value_of(Group::world(3));
  std::atomic<int> over = 0;
  const auto ends = run_ranks(testing::sharing_ranks(3, {.timeout = 200ms}),
                              [&](Communicator& c) -> Result<void> {
                                if (c.rank() == 1) {
                                  while (over < 2)
                                    std::this_thread::sleep_for(1ms);
                                  return c.barrier(world);
                                }
                                const auto late = c.barrier(world);
                                CHECK(c.stats().abandoned == 0);
                                ++over;
                                return late;
                              });
  for (const Result<void>& end : ends) {
    REQUIRE_FALSE(end.has_value());
    CHECK(to_string(end.error()).find("rank 1 did not come") !=
          std::string::npos);
  }
}

TEST_CASE("NCCL breaks in a redistribution: every rank reports the step") {
  const auto mesh = value_of(DeviceMesh::parse("2,2"));
  const auto src = value_of(TensorSpec::parse("f32[6,5] S(0),P(sum)", mesh));
  const auto dst = value_of(TensorSpec::parse("f32[6,5] R,S(1)", mesh));
  const auto plan = value_of(
      plan_redistribution(src, dst, testing::small_nodes(Engine::kNccl)));
  REQUIRE(plan.steps.size() > 1);
  std::barrier all(4);
  const auto ends = on_nccl(4, [&](Communicator& c) -> Result<void> {
    const auto program =
        value_of(RedistributeProgram::create(plan, src, dst, c.rank()));
    const LocalTensor source =
        value_of(c.allocate(program.source_shape(), DType::kF32));
    const float zero = 0;
    REQUIRE(c.memory_ops().fill(source, &zero).has_value());
    if (const auto good = run(program, c, source); !good) {
      return fail(good.error());
    }
    all.arrive_and_wait();
    if (c.rank() == 3) testing::break_fake_nccl(nccl::kRemoteError);
    all.arrive_and_wait();
    const auto bad = run(program, c, source);
    CHECK_FALSE(bad.has_value());
    all.arrive_and_wait();
    if (c.rank() == 3) testing::break_fake_nccl(0);
    // The world is done for.
    CHECK_FALSE(run(program, c, source).has_value());
    return bad ? Result<void>() : fail(bad.error());
  });
  for (const Result<void>& end : ends) {
    REQUIRE_FALSE(end.has_value());
    const std::string text = to_string(end.error());
    CAPTURE(text);
    CHECK(text.find("remote process exited") != std::string::npos);
  }
}

// Memory of the fake device that a run allocates. Freed memory is filled with 0x5a
// and kept, so that a late write is seen.
class WatchedMemory {
 public:
  LocalTensor allocate(const Dims& sizes, DType dtype) {
    const LocalTensor empty =
        LocalTensor::wrap(nullptr, sizes, dtype, nullptr, testing::kFakeDevice);
    const auto bytes = static_cast<std::size_t>(empty.bytes());
    void* const block = testing::device_block(std::max<std::size_t>(bytes, 1));
    REQUIRE(block != nullptr);
    ++allocations_;
    ++state_->held;
    std::shared_ptr<void> owner(block, [state = state_, bytes](void* freed) {
      const std::lock_guard lock(state->mutex);
      std::memset(testing::on_device(freed), 0x5a, bytes);
      state->freed.emplace_back(freed, bytes);
      --state->held;
    });
    return LocalTensor::wrap(block, sizes, dtype, std::move(owner),
                             testing::kFakeDevice);
  }
  int allocations() const { return allocations_; }
  // The number of tensors that have an owner.
  int held() const { return state_->held; }
  bool is_written_after_free() const {
    const std::lock_guard lock(state_->mutex);
    for (const auto& [block, bytes] : state_->freed) {
      const auto* const at =
          static_cast<const std::uint8_t*>(testing::on_device(block));
      if (std::any_of(at, at + bytes,
                      [](std::uint8_t byte) { return byte != 0x5a; })) {
        return true;
      }
    }
    return false;
  }

 private:
  struct State {
    State() = default;
    ~State() {
      for (const auto& [block, bytes] : freed) {
        testing::free_device_block(block);
      }
    }
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    std::mutex mutex;
    std::vector<std::pair<void*, std::size_t>> freed;
    std::atomic<int> held = 0;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
  int allocations_ = 0;
};

// How the run of rank 0 ends, at its allocation `at`.
struct RunEnd {
  enum class Kind : std::uint8_t { kNoMemory, kThrows, kWorldFails } kind;
  int at = 0;
  bool hangs = false;  // and the device does not end its work any more
};

struct EndedRun {
  std::optional<Error> error;
  WatchedMemory memory;
};

Result<LocalTensor> end_run(RunEnd::Kind how, Communicator& c,
                            const std::function<Result<LocalTensor>()>& rest) {
  const Error error{ErrorCode::kOutOfMemory, "the caller has no memory"};
  if (how == RunEnd::Kind::kNoMemory) return fail(error);
  if (how == RunEnd::Kind::kThrows) throw std::runtime_error("threw");
  c.abort(error);
  return rest();
}

// Runs a redistribution on a rank whose device is slow.
EndedRun run_slowly(const RedistributeProgram& program, Communicator& c,
                    const RunEnd& how) {
  // The columns are stored first, so a gather packs the source.
  Dims sizes = program.source_shape();
  std::reverse(sizes.begin(), sizes.end());
  const LocalTensor source =
      value_of(c.allocate(sizes, program.dtype())).transpose(0, 1);
  auto& queue = static_cast<testing::FakeQueue&>(c.memory_ops());
  EndedRun out;
  WatchedMemory& memory = out.memory;
  RunOptions options;
  options.allocate = [&](const Dims& shape,
                         DType dtype) -> Result<LocalTensor> {
    const auto allocate = [&] { return memory.allocate(shape, dtype); };
    if (c.rank() != 0 || memory.allocations() != how.at) return allocate();
    queue.set_hangs(how.hangs);
    return end_run(how.kind, c, allocate);
  };
  options.before_step = [&](std::size_t) {
    queue.push([begin = std::chrono::steady_clock::now()] {
      return std::chrono::steady_clock::now() > begin + 10ms;
    });
  };
  try {
    const auto made = run(program, c, source, options);
    if (!made) out.error = made.error();
  } catch (const std::runtime_error& thrown) {
    out.error = Error{ErrorCode::kRankFailed, thrown.what()};
  }
  queue.set_hangs(false);
  if (out.error) c.abort(*out.error);
  REQUIRE(queue.finish().has_value());
  return out;
}

// Returns the ends by rank, after both ranks have ended: a rank that fails may
// still hold the calls of others for a moment.
std::vector<EndedRun> run_two_slowly(const TensorSpec& src,
                                     const TensorSpec& dst, Engine engine,
                                     const RunEnd& how) {
  const auto plan =
      value_of(plan_redistribution(src, dst, testing::small_nodes(engine)));
  std::vector<EndedRun> out(2);
  const Body body = [&](Communicator& c) -> Result<void> {
    const auto program =
        value_of(RedistributeProgram::create(plan, src, dst, c.rank()));
    out[static_cast<std::size_t>(c.rank())] = run_slowly(program, c, how);
    return {};
  };
  const CommunicatorOptions options{.timeout = how.hangs ? 2s : 20s};
  if (engine == Engine::kNccl) {
    testing::run_nccl_ranks(2, options, body, testing::kFakeDevice);
  } else {
    run_ranks(testing::sharing_ranks(2, options), body);
  }
  return out;
}

// An all-reduce in f32, a gather and a scatter by way of a buffer, an exchange
// and a slice.
constexpr std::pair<const char*, const char*> kStagedMoves[] = {
    {"bf16[6,5] P(sum,f32)", "bf16[6,5] R"},
    {"f32[8,3] SS(0,2)", "f32[8,3] R"},
    {"bf16[5,3] P(sum,f32)", "bf16[5,3] S(1)"},
    {"f32[6,5] S(0)", "f32[6,5] S(1)"},
    {"f32[6,5] R", "f32[6,5] S(1)"}};

TEST_CASE("a run that fails leaves no work on memory of its caller") {
  const auto mesh = value_of(DeviceMesh::parse("2"));
  int failed = 0;
  for (const Engine engine : {Engine::kNccl, Engine::kThreads}) {
    for (const auto& [from, to] : kStagedMoves) {
      const auto src = value_of(TensorSpec::parse(from, mesh));
      const auto dst = value_of(TensorSpec::parse(to, mesh));
      const std::string move = std::string(from) + " to " + to;
      for (const auto kind : {RunEnd::Kind::kNoMemory, RunEnd::Kind::kThrows,
                              RunEnd::Kind::kWorldFails}) {
        for (int at = 0; at < 4; ++at) {
          CAPTURE(engine);
          CAPTURE(move);
          CAPTURE(static_cast<int>(kind));
          CAPTURE(at);
          const auto ends = run_two_slowly(src, dst, engine, {kind, at});
          for (const EndedRun& end : ends) {
            CHECK_FALSE(end.memory.is_written_after_free());
            CHECK(end.memory.held() == 0);
          }
          if (!ends[0].error) break;
          ++failed;
        }
      }
    }
  }
  CHECK(failed > 30);
}

TEST_CASE("memory of a run on a device that hangs is not freed, and counted") {
  const auto mesh = value_of(DeviceMesh::parse("2"));
  const auto src = value_of(TensorSpec::parse("bf16[6,5] P(sum,f32)", mesh));
  const auto dst = value_of(TensorSpec::parse("bf16[6,5] R", mesh));
  for (const Engine engine : {Engine::kNccl, Engine::kThreads}) {
    CAPTURE(engine);
    // The terms have been copied, and the world fails.
    const auto ends =
        run_two_slowly(src, dst, engine, {RunEnd::Kind::kWorldFails, 0, true});
    REQUIRE(ends[0].error);
    CAPTURE(to_string(*ends[0].error));
    CHECK(ends[0].memory.held() == 1);
    // The source of bf16[6,5] and its f32 copy.
    CHECK(to_string(*ends[0].error).find("180 bytes stay allocated") !=
          std::string::npos);
  }
}

TEST_CASE("several ranks on one GPU, or what is missing for that") {
  const auto devices = cuda_device_count();
  if (!devices) {
    CHECK(devices.error().code == ErrorCode::kEngineMissing);
    const auto none = cuda_thread_ranks(2, 0);
    REQUIRE_FALSE(none.has_value());
    CHECK(none.error().code == ErrorCode::kEngineMissing);
    return;
  }
  CHECK_CODE(cuda_thread_ranks(2, *devices), ErrorCode::kEngineMissing);
  const auto on_gpu = [](std::int64_t ranks, const Body& body) {
    return run_ranks(value_of(cuda_thread_ranks(ranks, 0)), body);
  };
  testing::check_redistributions(on_gpu, Engine::kThreads, cases(100));
  testing::check_redistributions_between_meshes(on_gpu, Engine::kThreads,
                                                cases(40));
}

}  // namespace
}  // namespace shardprop

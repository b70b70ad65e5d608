// Redistributions of tensors on a device: over NCCL and over threads that share
// the device, both of them fakes; and on a GPU if there is one.
#include "execute/redistribution_jobs.h"
#include "nccl/fake_device.h"
#include "nccl/fake_nccl.h"
#include "nccl/nccl_worlds.h"

#include <shardprop/collective/functional.h>
#include <shardprop/collective/thread_world.h>
#include <shardprop/nccl/cuda_ranks.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
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

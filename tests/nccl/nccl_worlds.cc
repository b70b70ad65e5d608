#include "nccl/nccl_worlds.h"

#include <doctest/doctest.h>
#include <shardprop/collective/thread_world.h>
#include <shardprop/nccl/cuda_ranks.h>

#include "collective/thread_communicator.h"
#include "collective/values.h"
#include "collective/worlds.h"
#include "nccl/fake_device.h"
#include "nccl/fake_nccl.h"
#include "nccl/nccl_communicator.h"

#include <chrono>
#include <utility>

namespace shardprop::testing {

std::vector<Result<void>> run_nccl_ranks(
    std::int64_t ranks, const CommunicatorOptions& options,
    const std::function<Result<void>(Communicator&)>& body, Device device) {
  ThreadWorld world(ranks, options);
  std::vector<std::unique_ptr<Communicator>> ends;
  for (std::int64_t r = 0; r < ranks; ++r) {
    ends.push_back(nccl::nccl_communicator_on(
        fake_nccl(), std::make_unique<FakeQueue>(device), world.communicator(r),
        options));
  }
  return run_ranks(std::move(ends), body);
}

std::vector<std::unique_ptr<Communicator>> sharing_ranks(
    std::int64_t ranks, const CommunicatorOptions& options) {
  std::vector<std::shared_ptr<collective::DeviceQueue>> queues;
  for (std::int64_t r = 0; r < ranks; ++r) {
    queues.push_back(std::make_shared<FakeQueue>(kFakeDevice));
  }
  return collective::thread_ranks_on(std::move(queues), options);
}

namespace {

const CommunicatorOptions kPatient{.timeout = std::chrono::seconds(20)};

void check_ends(const std::vector<Result<void>>& ends) {
  for (const Result<void>& end : ends) {
    if (!end) FAIL_CHECK(to_string(end.error()));
  }
}

}  // namespace

bool on_ranks(std::int64_t ranks,
              const std::function<void(Communicator&)>& body) {
  const auto run = [&](Communicator& communicator) {
    body(communicator);
    return Result<void>();
  };
  check_ends(run_nccl_ranks(ranks, kPatient, run));
  return true;
}

bool on_engine_memory(std::int64_t ranks,
                      const std::function<void(Communicator&)>& body) {
  const auto run = [&](Communicator& communicator) {
    body(communicator);
    return Result<void>();
  };
  check_ends(run_nccl_ranks(ranks, kPatient, run, kFakeDevice));
  check_ends(run_ranks(sharing_ranks(ranks, kPatient), run));
  if (cuda_device_count()) {
    check_ends(run_ranks(value_of(cuda_thread_ranks(ranks, 0, kPatient)), run));
  }
  return true;
}

}  // namespace shardprop::testing

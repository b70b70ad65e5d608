#include "nccl/nccl_worlds.h"

#include <doctest/doctest.h>
#include <shardprop/collective/thread_world.h>

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

bool on_ranks(std::int64_t ranks,
              const std::function<void(Communicator&)>& body) {
  const CommunicatorOptions patient{.timeout = std::chrono::seconds(20)};
  const auto ends =
      run_nccl_ranks(ranks, patient, [&](Communicator& communicator) {
        body(communicator);
        return Result<void>();
      });
  for (const Result<void>& end : ends) {
    if (!end) FAIL_CHECK(to_string(end.error()));
  }
  return true;
}

}  // namespace shardprop::testing

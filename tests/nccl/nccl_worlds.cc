#include "nccl/nccl_worlds.h"

#include <doctest/doctest.h>
#include <shardprop/collective/thread_world.h>

#include "collective/worlds.h"
#include "nccl/fake_nccl.h"
#include "nccl/nccl_communicator.h"

#include <chrono>
#include <thread>
#include <utility>

namespace shardprop::testing {

std::vector<Result<void>> run_nccl_ranks(
    std::int64_t ranks, const CommunicatorOptions& options,
    const std::function<Result<void>(Communicator&)>& body) {
  ThreadWorld world(ranks, options);
  std::vector<Result<void>> ends(static_cast<std::size_t>(ranks));
  std::vector<std::unique_ptr<Communicator>> mine;
  for (std::int64_t r = 0; r < ranks; ++r) {
    mine.push_back(nccl::nccl_communicator_on(fake_nccl(), fake_queue(),
                                              world.communicator(r), options));
  }
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < ends.size(); ++r) {
    threads.emplace_back([&ends, &body, r, end = std::move(mine[r])] {
      ends[r] = body(*end);
      if (!ends[r] && !end->failure()) end->abort(ends[r].error());
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ends;
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

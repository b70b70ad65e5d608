// Runs random redistributions on threads.
#include "execute/redistribution_jobs.h"

#include <shardprop/collective/thread_world.h>

namespace shardprop {
namespace {

std::vector<Result<void>> threads(
    std::int64_t ranks,
    const std::function<Result<void>(Communicator&)>& body) {
  return run_ranks(ranks, {}, body);
}

TEST_CASE("random redistributions on threads") {
  testing::check_redistributions(threads, Engine::kThreads,
                                 testing::cases(1500));
}

TEST_CASE("random redistributions between meshes on threads") {
  testing::check_redistributions_between_meshes(threads, Engine::kThreads,
                                                testing::cases(500));
}

}  // namespace
}  // namespace shardprop

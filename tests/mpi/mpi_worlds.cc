// Runs the tests with one communicator, made before and destroyed after: a
// process may initialise MPI once. `--checked` is ours, the rest doctest's.
#define DOCTEST_CONFIG_IMPLEMENT
#include "mpi/mpi_worlds.h"

#include <doctest/doctest.h>

#include "collective/worlds.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>

namespace shardprop::testing {
namespace {

std::unique_ptr<Communicator> the_world;

}  // namespace

Communicator& mpi_world() { return *the_world; }

bool on_ranks(std::int64_t ranks,
              const std::function<void(Communicator&)>& body) {
  if (ranks > the_world->size()) return false;
  if (the_world->rank() < ranks) body(*the_world);
  return true;
}

bool on_engine_memory(std::int64_t ranks,
                      const std::function<void(Communicator&)>& body) {
  return on_ranks(ranks, body);
}

}  // namespace shardprop::testing

int main(int argc, char** argv) {
  using namespace shardprop;
  MpiOptions options;
  options.common.timeout = std::chrono::seconds(20);
  for (int i = 1; i < argc; ++i) {
    options.common.checked |= std::strcmp(argv[i], "--checked") == 0;
  }
  // The limit is small, so that tensors of the tests are sent in several parts.
  options.largest_part = 1000;
  auto world = mpi_communicator(options);
  if (!world) {
    std::fputs(to_string(world.error()).c_str(), stderr);
    return 2;
  }
  testing::the_world = *std::move(world);
  doctest::Context context(argc, argv);
  const int failed = context.run();
  testing::the_world.reset();
  // We initialised MPI, so it has been finalised and cannot be initialised
  // again.
  const auto again = mpi_communicator(options);
  if (again || again.error().code != ErrorCode::kEngine) {
    std::fputs("MPI was not finalised\n", stderr);
    return 1;
  }
  return failed;
}

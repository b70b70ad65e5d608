// A program of several steps in which one rank fails; every rank writes how it
// ended to <folder>/rank<r>, which check_fault.cmake reads.
//
//   mpi_fault throws|hangs|mismatch|killed <guilty rank> <step> <folder>
#include <shardprop/collective/functional.h>
#include <shardprop/mpi/mpi_world.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

namespace shardprop {
namespace {

using namespace std::chrono_literals;

constexpr auto kTimeout = 1s;

// Whether the rank goes on with the step.
bool go_on(Communicator& communicator, const std::string& fault) {
  if (fault == "killed") std::raise(SIGKILL);
  if (fault == "hangs") {
    std::this_thread::sleep_for(2 * kTimeout);
    std::_Exit(0);
  }
  if (fault == "throws") {
    communicator.abort({ErrorCode::kOutOfMemory, "no more paper"});
    return false;
  }
  return true;
}

Result<void> run(Communicator& communicator, const std::string& fault,
                 bool guilty, int at) {
  const auto n = communicator.size();
  auto group = Group::world(n);
  if (!group) return fail(group.error());
  auto zeros = LocalTensor::zeros({n, 5000}, DType::kBF16);
  if (!zeros) return fail(zeros.error());
  LocalTensor data = *std::move(zeros);
  for (int step = 0; step < 6; ++step) {
    const bool now = guilty && step == at;
    if (now && !go_on(communicator, fault)) return {};
    const CollectiveOptions options{.where = "step " + std::to_string(step)};
    const bool reduce = (step % 2 == 0) != (now && fault == "mismatch");
    const auto result =
        reduce ? all_reduce(communicator, data, ReduceOp::kMax, *group, options)
               : all_to_all_single(communicator, data, {}, *group, options);
    if (!result) return fail(result.error());
    const auto waited = result->wait();
    if (!waited) return fail(waited.error());
    data = *waited;
  }
  return {};
}

}  // namespace
}  // namespace shardprop

int main(int argc, char** argv) {
  using namespace shardprop;
  if (argc != 5) return 2;
  const std::string fault = argv[1];
  MpiOptions options;
  options.common.timeout = kTimeout;
  options.common.checked = fault == "mismatch";
  auto world = mpi_communicator(options);
  if (!world) {
    std::fputs(to_string(world.error()).c_str(), stderr);
    return 2;
  }
  const std::int64_t rank = (*world)->rank();
  const auto begin = std::chrono::steady_clock::now();
  const Result<void> end =
      run(**world, fault, rank == std::atoll(argv[2]), std::atoi(argv[3]));
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begin);
  const CommunicatorStats stats = (*world)->stats();
  {
    std::ofstream out(std::string(argv[4]) + "/rank" + std::to_string(rank));
    out << (end ? "ended well\n" : to_string(end.error()));
    out << (took < 3 * kTimeout ? "in time" : "too late") << '\n';
    out << stats.abandoned << " abandoned, " << stats.abandoned_bytes
        << " bytes\n";
  }
  // Without finalising, which would wait for the rank that is gone.
  std::_Exit(0);
}

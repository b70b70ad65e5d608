// Kills one process during a redistribution. Every survivor writes how its run
// ended to <folder>/rank<r>, which check_kill.cmake reads. The test runs on MPI
// or, with nccl, on GPUs over NCCL.
//
//   mpi_kill list                                 every kill there is, a line
//                                                 each: case, rank, step
//   mpirun --enable-recovery -n 4 mpi_kill <case> <rank> <step> <folder> [nccl]
#include "execute/gpu_of_this_rank.h"
#include "execute/moved.h"

#include <shardprop/execute/executor.h>
#include <shardprop/redistribute/planner.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>

namespace shardprop {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTimeout = 1s;
// Processes of a busy machine come late.
constexpr std::chrono::milliseconds kStart = 30s;
constexpr std::int64_t kNobody = -1;

struct Case {
  const char* mesh;
  const char* tensor;
  const char* src;
  const char* dst;
};

// The cases run on four ranks. Each needs one to four collectives; together
// they have every kind.
constexpr std::array<Case, 6> kCases{{
    {"2,2", "f32[6,5]", "S(0),P(sum)", "R,S(1)"},
    {"4", "i32[7,4]", "S(1)", "S(0)"},
    {"2,2", "bf16[8,8]", "P(sum,f32),P(sum,f32)", "S(1),S(0)"},
    {"2,2", "f32[9,300]", "SS(0,2),R", "R,S(0)"},
    {"4", "i64[4,4]", "P(bxor)", "R"},
    {"2,2", "f64[5,2000]", "S(1),S(0)", "S(0),S(1)"},
}};

template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(to_string(result.error()));
  return *std::move(result);
}

struct Problem {
  TensorSpec src;
  TensorSpec dst;
  RedistributePlan plan;
};

Problem problem_of(const Case& drawn) {
  const DeviceMesh mesh = value_of(DeviceMesh::parse(drawn.mesh));
  const std::string tensor = std::string(drawn.tensor) + " ";
  TensorSpec src = value_of(TensorSpec::parse(tensor + drawn.src, mesh));
  TensorSpec dst = value_of(TensorSpec::parse(tensor + drawn.dst, mesh));
  RedistributePlan plan =
      value_of(plan_redistribution(src, dst, default_topology()));
  return {std::move(src), std::move(dst), std::move(plan)};
}

void list() {
  for (std::size_t c = 0; c < kCases.size(); ++c) {
    const Problem problem = problem_of(kCases[c]);
    for (std::size_t step = 0; step < problem.plan.steps.size(); ++step) {
      for (std::int64_t rank = 0; rank < problem.src.mesh().size(); ++rank) {
        std::printf("%zu %lld %zu\n", c, static_cast<long long>(rank), step);
      }
    }
  }
}

// Returns how the rank's run ends. A rank whose groups lack the dead rank gets
// the error in the barrier after the run.
Result<void> run_until_killed(const Problem& problem,
                              Communicator& communicator, std::int64_t killed,
                              std::size_t at) {
  const auto program = value_of(RedistributeProgram::create(
      problem.plan, problem.src, problem.dst, communicator.rank()));
  MemoryOps& memory = communicator.memory_ops();
  const auto source = value_of(
      testing::moved(memory,
                     value_of(LocalTensor::zeros(program.source_shape(),
                                                 problem.src.meta().dtype())),
                     memory));
  RunOptions options;
  if (communicator.rank() == killed) {
    options.before_step = [&](std::size_t step) {
      if (step == at) std::raise(SIGKILL);
    };
  }
  const auto out = run(program, communicator, source, options);
  if (!out) return fail(out.error());
  return communicator.barrier(value_of(Group::world(communicator.size())));
}

// NCCL sets its groups up within the first run, which takes longer than kTimeout.
void warm_up(const Problem& problem, Communicator& communicator) {
  const auto ready = run_until_killed(problem, communicator, kNobody, 0);
  if (!ready) throw std::runtime_error(to_string(ready.error()));
}

void take_part(const Case& drawn, std::int64_t killed, std::size_t at,
               const std::string& folder, bool on_gpus) {
  const CommunicatorOptions options{.timeout = kStart};
  auto made = on_gpus ? testing::gpu_of_this_rank(options)
                      : mpi_communicator({.common = options});
  if (!made && made.error().code == ErrorCode::kEngineMissing) {
    std::fprintf(stderr, "skipped: %s\n", to_string(made.error()).c_str());
    std::_Exit(0);
  }
  const auto communicator = value_of(std::move(made));
  const Problem problem = problem_of(drawn);
  warm_up(problem, *communicator);
  communicator->set_timeout(kTimeout);
  const auto begin = Clock::now();
  const Result<void> end = run_until_killed(problem, *communicator, killed, at);
  const auto took = Clock::now() - begin;
  std::ofstream out(folder + "/rank" + std::to_string(communicator->rank()));
  out << (end ? "ended well\n" : to_string(end.error()));
  out << (took < 3 * kTimeout ? "in time\n" : "too late\n");
  out.close();
  // Without finalising, which would wait for the rank that is gone.
  std::_Exit(0);
}

}  // namespace
}  // namespace shardprop

int main(int argc, char** argv) {
  using namespace shardprop;
  if (argc == 2 && std::string(argv[1]) == "list") {
    list();
    return 0;
  }
  if (argc != 5 && argc != 6) return 2;
  take_part(kCases.at(std::strtoull(argv[1], nullptr, 10)), std::atoll(argv[2]),
            std::strtoull(argv[3], nullptr, 10), argv[4], argc == 6);
}

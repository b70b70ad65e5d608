// Times collectives of one engine on command, so that a driver can take turns
// with others (compare.py).
//
//   bench_collective threads
//   mpiexec -n 4 bench_collective mpi
//
// Reads lines `<collective> <ranks> <bytes> <calls>` and prints the seconds per
// call for each line. For all_gather and reduce_scatter, bytes are the full
// tensor of a group; else they are the tensor of one rank. For `copy`, every
// rank copies this much on its own, by the faster of memcpy and our kernel. The
// program ends at the end of its input.
#include <shardprop/collective/functional.h>
#include <shardprop/collective/kernel_view.h>
#include <shardprop/collective/thread_world.h>
#ifdef SHARDPROP_HAS_MPI
#include <shardprop/mpi/mpi_world.h>
#endif

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>

namespace shardprop {
namespace {

struct Command {
  std::string collective;
  std::int64_t ranks = 0;
  std::int64_t bytes = 0;
  std::int64_t calls = 0;
};

[[noreturn]] void stop(const Error& error) {
  std::cerr << to_string(error);
  std::exit(1);
}

template <class T>
T must(Result<T> result) {
  if (!result) stop(result.error());
  return *std::move(result);
}

LocalTensor floats(std::int64_t bytes) {
  return must(LocalTensor::zeros({bytes / 4}, DType::kF32));
}

double seconds_per_call(Communicator& world, const Group& group,
                        std::int64_t calls, const std::function<void()>& call) {
  call();
  must(world.barrier(group).map([] { return 0; }));
  const auto begin = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < calls; ++i) call();
  must(world.barrier(group).map([] { return 0; }));
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - begin;
  return took.count() / static_cast<double>(calls);
}

// Uses the same memory every time, because fresh pages cost more than the
// collective.
double timed(Communicator& world, const Command& command) {
  const Group group = must(Group::world(command.ranks));
  const std::int64_t n = command.ranks;
  const auto time = [&](const std::function<void()>& call) {
    return seconds_per_call(world, group, command.calls, call);
  };
  const std::string& name = command.collective;
  const LocalTensor whole = floats(command.bytes);
  if (name == "all_gather" || name == "reduce_scatter") {
    const LocalTensor part = floats(command.bytes / n);
    return time([&] {
      must((name == "all_gather"
                ? all_gather_tensor(world, part, 0, group, {.out = whole})
                : reduce_scatter_tensor(world, whole, ReduceOp::kSum, 0, group,
                                        {.out = part}))
               .and_then([](const AsyncTensor& r) { return r.wait(); }));
    });
  }
  const LocalTensor other = floats(command.bytes);
  if (name == "copy") {
    const auto bytes = static_cast<std::size_t>(command.bytes);
    const double ours =
        time([&] { must(copy(whole, other).map([] { return 0; })); });
    const double memcpys =
        time([&] { std::memcpy(other.data(), whole.data(), bytes); });
    return std::min(ours, memcpys);
  }
  std::vector<std::int64_t> ring;
  for (std::int64_t r = 0; r < n; ++r) ring.push_back((r + 1) % n);
  const CollectiveOptions into{.out = other};
  return time([&] {
    must([&]() -> Result<AsyncTensor> {
      if (name == "all_reduce") {
        return all_reduce(world, whole, ReduceOp::kSum, group, into);
      }
      if (name == "all_to_all") {
        return all_to_all_single(world, whole, {}, group, into);
      }
      if (name == "broadcast") return broadcast(world, whole, 0, group, into);
      if (name == "permute") {
        return permute_tensor(world, whole, ring, group, into);
      }
      return fail(ErrorCode::kInvalidArgument, "no collective " + name);
    }()
                      .and_then([](const AsyncTensor& r) { return r.wait(); }));
  });
}

bool read(Command& command) {
  return static_cast<bool>(std::cin >> command.collective >> command.ranks >>
                           command.bytes >> command.calls);
}

void serve_threads() {
  Command command;
  while (read(command)) {
    double seconds = 0;
    const auto ends = run_ranks(command.ranks, {}, [&](Communicator& world) {
      const double took = timed(world, command);
      if (world.rank() == 0) seconds = took;
      return Result<void>();
    });
    for (const Result<void>& end : ends) {
      if (!end) stop(end.error());
    }
    std::cout << seconds << std::endl;
  }
}

#ifdef SHARDPROP_HAS_MPI
// Rank 0 reads; the other ranks get each command by broadcast.
void serve_mpi() {
  MpiOptions options;
  options.common.timeout = std::chrono::hours(1);
  const auto world = must(mpi_communicator(options));
  const Group everyone = must(Group::world(world->size()));
  for (;;) {
    const LocalTensor line = must(LocalTensor::zeros({256}, DType::kU8));
    Command command;
    if (world->rank() == 0 && read(command)) {
      const std::string text =
          command.collective + ' ' + std::to_string(command.ranks) + ' ' +
          std::to_string(command.bytes) + ' ' + std::to_string(command.calls);
      std::memcpy(line.data(), text.data(), text.size());
    }
    must(broadcast(*world, line, 0, everyone, {.out = line})
             .and_then([](const AsyncTensor& r) { return r.wait(); }));
    std::istringstream in(std::string(line.data_as<const char>()));
    if (!(in >> command.collective >> command.ranks >> command.bytes >>
          command.calls)) {
      return;
    }
    double seconds = 0;
    if (world->rank() < command.ranks) seconds = timed(*world, command);
    if (world->rank() == 0) std::cout << seconds << std::endl;
  }
}
#endif

}  // namespace
}  // namespace shardprop

int main(int argc, char** argv) {
  const std::string engine = argc == 2 ? argv[1] : "";
  if (engine == "threads") {
    shardprop::serve_threads();
    return 0;
  }
#ifdef SHARDPROP_HAS_MPI
  if (engine == "mpi") {
    shardprop::serve_mpi();
    return 0;
  }
#endif
  std::cerr << "bench_collective threads|mpi\n";
  return 2;
}

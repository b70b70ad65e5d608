// Measures S(0) -> S(1) of square f64 matrices: the executor on MPI and on
// threads against MPI_Alltoallw with subarrays (Dalcin et al. 2019,
// mpi4py-fft), in which MPI packs. One run measures the three in turn. The
// threads are those of rank 0 while the other processes sleep.
//
//   mpirun -n 4 bench_execute [largest side]
//
// Prints for each size the minimum and the median time in milliseconds, and the
// ratio of the medians to MPI_Alltoallw's.
#include <mpi.h>
#include <shardprop/collective/thread_world.h>
#include <shardprop/execute/executor.h>
#include <shardprop/mpi/mpi_world.h>
#include <shardprop/redistribute/planner.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace shardprop;  // NOLINT(google-build-using-namespace)
using Clock = std::chrono::steady_clock;

template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(to_string(result.error()));
  return *std::move(result);
}

double milliseconds(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

struct Problem {
  std::int64_t side;
  std::int64_t ranks;
  TensorSpec src;
  TensorSpec dst;
  RedistributePlan plan;
};

Problem problem_of(std::int64_t side, std::int64_t ranks) {
  const MeshDim dim{"x", ranks};
  const DeviceMesh mesh = value_of(DeviceMesh::create({&dim, 1}));
  const TensorMeta meta =
      value_of(TensorMeta::contiguous({side, side}, DType::kF64));
  const auto spec = [&](const char* layout) {
    return value_of(
        TensorSpec::create(mesh, value_of(Layout::parse(layout)), meta));
  };
  Problem problem{side, ranks, spec("S(0)"), spec("S(1)"), {}};
  problem.plan = value_of(
      plan_redistribution(problem.src, problem.dst, default_topology()));
  return problem;
}

// Returns element (i, j) of the full matrix.
double element(std::int64_t i, std::int64_t j) {
  return static_cast<double>(i * 65536 + j);
}

LocalTensor rows_of(const Problem& problem, std::int64_t rank) {
  const Interval rows = chunk(problem.side, problem.ranks, rank);
  LocalTensor out =
      value_of(LocalTensor::empty({rows.size(), problem.side}, DType::kF64));
  auto* to = out.data_as<double>();
  for (std::int64_t i = rows.begin; i < rows.end; ++i) {
    for (std::int64_t j = 0; j < problem.side; ++j) *to++ = element(i, j);
  }
  return out;
}

void check(const Problem& problem, std::int64_t rank, const double* columns) {
  const Interval held = chunk(problem.side, problem.ranks, rank);
  for (std::int64_t i = 0; i < problem.side; ++i) {
    for (std::int64_t j = held.begin; j < held.end; ++j) {
      if (*columns++ != element(i, j)) {
        throw std::runtime_error("a result is wrong");
      }
    }
  }
}

// The executor, with results in memory that is kept between runs, as the peer's
// are.
class Executor {
 public:
  Executor(const Problem& problem, Communicator& communicator)
      : problem_(problem),
        communicator_(communicator),
        program_(value_of(RedistributeProgram::create(
            problem.plan, problem.src, problem.dst, communicator.rank()))),
        source_(rows_of(problem, communicator.rank())),
        out_(value_of(
            LocalTensor::zeros(program_.result_shape(), DType::kF64))) {
    options_.allocate = [this](const Dims&, DType) -> Result<LocalTensor> {
      return out_;
    };
  }
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  void run() {
    value_of(shardprop::run(program_, communicator_, source_, options_));
  }
  void check() const {
    ::check(problem_, communicator_.rank(), out_.data_as<double>());
  }

 private:
  const Problem& problem_;
  Communicator& communicator_;
  RedistributeProgram program_;
  LocalTensor source_;
  LocalTensor out_;
  RunOptions options_;
};

class Alltoallw {
 public:
  Alltoallw(const Problem& problem, int rank)
      : problem_(problem), rank_(rank), source_(rows_of(problem, rank)) {
    const Interval rows = chunk(problem.side, problem.ranks, rank);
    const Interval columns = chunk(problem.side, problem.ranks, rank);
    out_ = value_of(
        LocalTensor::zeros({problem.side, columns.size()}, DType::kF64));
    for (std::int64_t peer = 0; peer < problem.ranks; ++peer) {
      const Interval theirs = chunk(problem.side, problem.ranks, peer);
      sends_.push_back(part({rows.size(), problem.side}, {0, theirs.begin},
                            {rows.size(), theirs.size()}));
      receives_.push_back(part({problem.side, columns.size()},
                               {theirs.begin, 0},
                               {theirs.size(), columns.size()}));
    }
    counts_.assign(sends_.size(), 1);
    offsets_.assign(sends_.size(), 0);
  }
  ~Alltoallw() {
    for (auto* types : {&sends_, &receives_}) {
      for (MPI_Datatype& type : *types) MPI_Type_free(&type);
    }
  }
  Alltoallw(const Alltoallw&) = delete;
  Alltoallw& operator=(const Alltoallw&) = delete;

  void run() {
    MPI_Alltoallw(source_.data(), counts_.data(), offsets_.data(),
                  sends_.data(), out_.data(), counts_.data(), offsets_.data(),
                  receives_.data(), MPI_COMM_WORLD);
  }
  void check() const { ::check(problem_, rank_, out_.data_as<double>()); }

 private:
  static MPI_Datatype part(std::pair<std::int64_t, std::int64_t> whole,
                           std::pair<std::int64_t, std::int64_t> start,
                           std::pair<std::int64_t, std::int64_t> size) {
    const auto two = [](std::pair<std::int64_t, std::int64_t> values) {
      return std::vector<int>{static_cast<int>(values.first),
                              static_cast<int>(values.second)};
    };
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_create_subarray(2, two(whole).data(), two(size).data(),
                             two(start).data(), MPI_ORDER_C, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
  }

  const Problem& problem_;
  int rank_;
  LocalTensor source_;
  LocalTensor out_;
  std::vector<MPI_Datatype> sends_;
  std::vector<MPI_Datatype> receives_;
  std::vector<int> counts_;
  std::vector<int> offsets_;
};

// Waits for all processes without using their cores.
void quiet_barrier() {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int done = 0;;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done != 0) return;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

// Returns the time from the common start of all processes to the end of the
// last one.
double timed(const std::function<void()>& run) {
  MPI_Barrier(MPI_COMM_WORLD);
  const auto begin = Clock::now();
  run();
  double took = milliseconds(Clock::now() - begin);
  MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return took;
}

// The time of the slowest thread in one round; buffers are prepared before.
double timed_on_threads(const Problem& problem) {
  double took = 0;
  std::mutex mutex;
  const auto ends = run_ranks(
      problem.ranks, {}, [&](Communicator& communicator) -> Result<void> {
        Executor executor(problem, communicator);
        executor.run();  // groups are set up, memory is touched
        const Group world = value_of(Group::world(problem.ranks));
        auto ready = communicator.barrier(world);
        if (!ready) return ready;
        const auto begin = Clock::now();
        executor.run();
        const double own = milliseconds(Clock::now() - begin);
        const std::lock_guard<std::mutex> lock(mutex);
        took = std::max(took, own);
        executor.check();
        return {};
      });
  for (const auto& end : ends) {
    if (!end) throw std::runtime_error(to_string(end.error()));
  }
  return took;
}

struct Times {
  std::vector<double> all;
  double least() const { return *std::min_element(all.begin(), all.end()); }
  double median() const {
    std::vector<double> sorted = all;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

void measure(const Problem& problem, Communicator& communicator) {
  Executor executor(problem, communicator);
  Alltoallw peer(problem, static_cast<int>(communicator.rank()));
  executor.run();
  executor.check();
  peer.run();
  peer.check();
  const std::int64_t bytes = problem.side * problem.side * 8;
  const int rounds = bytes <= (16 << 20) ? 15 : 7;
  Times mpi;
  Times alltoallw;
  Times threads;
  for (int round = 0; round < rounds; ++round) {
    mpi.all.push_back(timed([&] { executor.run(); }));
    alltoallw.all.push_back(timed([&] { peer.run(); }));
    quiet_barrier();
    if (communicator.rank() == 0) {
      threads.all.push_back(timed_on_threads(problem));
    }
    quiet_barrier();
  }
  executor.check();
  if (communicator.rank() != 0) return;
  std::printf(
      "%6lld %8.1f  %9.3f %9.3f  %9.3f %9.3f  %9.3f %9.3f  %6.2f %6.2f\n",
      static_cast<long long>(problem.side),
      static_cast<double>(bytes) / (1 << 20), alltoallw.least(),
      alltoallw.median(), mpi.least(), mpi.median(), threads.least(),
      threads.median(), mpi.median() / alltoallw.median(),
      threads.median() / alltoallw.median());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t most = argc > 1 ? std::atoll(argv[1]) : 4096;
  const auto communicator = value_of(mpi_communicator());
  if (communicator->rank() == 0) {
    std::printf(
        "%lld ranks, f64, milliseconds (least, median)\n"
        "  side      MiB  Alltoallw            executor, MPI        executor, "
        "threads    ratios of medians\n",
        static_cast<long long>(communicator->size()));
  }
  for (const std::int64_t side : {64, 255, 512, 1024, 2047, 4096, 8192}) {
    if (side <= most) {
      measure(problem_of(side, communicator->size()), *communicator);
    }
  }
  return 0;
}

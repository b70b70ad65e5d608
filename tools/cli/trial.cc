#include "cli/trial.h"

#include "base/try.h"
#include "cli/made_up_data.h"
#include "cli/trial_memory.h"

#include <shardprop/collective/thread_world.h>
#include <shardprop/execute/executor.h>
#include <shardprop/nccl/cuda_ranks.h>
#include <shardprop/nccl/nccl_world.h>
#include <shardprop/placement/local_region.h>
#ifdef SHARDPROP_WITH_MPI
#include <shardprop/mpi/mpi_world.h>
#endif

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

namespace shardprop::cli {
namespace {

std::uint64_t digest_of(const std::vector<std::byte>& bytes) {
  std::uint64_t digest = 0xcbf29ce484222325ULL;
  for (const std::byte byte : bytes) {
    digest = (digest ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3ULL;
  }
  return digest;
}

// Returns the ranks of both meshes, each once, in ascending order.
Group::Ranks ranks_of(const TensorSpec& src, const TensorSpec& dst) {
  Group::Ranks ranks;
  for (const TensorSpec* spec : {&src, &dst}) {
    for (std::int64_t i = 0; i < spec->mesh().size(); ++i) {
      ranks.push_back(spec->mesh().rank_at_index(i));
    }
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

// The final bytes of each rank of the target's mesh, in mesh order.
using Results = std::vector<std::vector<std::byte>>;

class RankTrial {
 public:
  // Ranks of one process put their results into `together`. If it is null, the
  // ranks send their results to each other.
  RankTrial(const TensorSpec& src, const TensorSpec& dst,
            const MadeUpData& data, const ProgramOf& program_of, Group group,
            Results* together)
      : src_(src),
        dst_(dst),
        data_(data),
        program_of_(program_of),
        group_(std::move(group)),
        together_(together) {}

  // Runs one rank's part; judge() sets the verdict. `host` compares the data
  // that `communicator` has moved, which may be in other memory.
  Result<Trial> operator()(Communicator& communicator,
                           Communicator& host) const {
    const std::int64_t rank = communicator.rank();
    SP_ASSIGN(const RedistributeProgram program, program_of_(rank));
    LocalTensor source;
    if (program.has_source()) {
      SP_ASSIGN(const LocalTensor made, data_.source(rank));
      SP_ASSIGN(source, communicator.allocate(made.sizes(), made.dtype()));
      SP_CHECK(communicator.memory_ops().transfer(made, source));
    }
    SP_ASSIGN(const std::vector<std::byte> before,
              bytes_of(communicator, source));
    SP_CHECK(host.barrier(group_));
    RunReport report;
    const auto begin = std::chrono::steady_clock::now();
    SP_ASSIGN(LocalTensor out, run(program, communicator, source, {}, &report));
    const auto took = std::chrono::steady_clock::now() - begin;
    SP_ASSIGN(const std::vector<std::byte> after,
              bytes_of(communicator, source));
    SP_ASSIGN(std::vector<std::byte> result, bytes_of(communicator, out));
    out = {};

    // The figures are the payload of each step, then memory and time.
    std::vector<std::int64_t> figures = report.step_payload_bytes;
    figures.push_back(report.peak_bytes);
    figures.push_back(
        std::chrono::duration_cast<std::chrono::nanoseconds>(took).count());
    Trial trial;
    SP_CHECK(share(host, group_, std::move(figures), trial));
    if (before != after) {
      trial.wrong = "the source of rank " + std::to_string(rank);
    }
    trial.prints = rank == 0;
    if (together_ == nullptr) {
      SP_ASSIGN(const Results results, gather(host, group_, std::move(result)));
      judge(results, trial);
    } else if (const auto index = dst_.mesh().index_of(rank)) {
      (*together_)[static_cast<std::size_t>(*index)] = std::move(result);
    }
    return trial;
  }

  // Compares the results of the ranks.
  void judge(const Results& results, Trial& trial) const {
    if (trial.wrong.empty()) trial.wrong = data_.check(results);
    trial.ok = trial.wrong.empty();
    for (std::size_t i = 0; i < results.size(); ++i) {
      trial.ranks.push_back(
          {dst_.mesh().rank_at_index(static_cast<std::int64_t>(i)),
           static_cast<std::int64_t>(results[i].size()),
           digest_of(results[i])});
    }
  }

 private:
  // Copies a row-major tensor to the host.
  static Result<std::vector<std::byte>> bytes_of(Communicator& communicator,
                                                 const LocalTensor& tensor) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes()));
    SP_CHECK(communicator.memory_ops().transfer(
        tensor,
        LocalTensor::wrap(bytes.data(), tensor.sizes(), tensor.dtype())));
    return bytes;
  }

  // Replaces every figure by its maximum over all ranks.
  static Result<void> share(Communicator& communicator, const Group& group,
                            std::vector<std::int64_t> own, Trial& trial) {
    // The tensor owns the figures, since MPI may write them after a timeout.
    const auto kept =
        std::make_shared<std::vector<std::int64_t>>(std::move(own));
    std::vector<std::int64_t>& figures = *kept;
    const LocalTensor all = LocalTensor::wrap(
        figures.data(), Dims{static_cast<std::int64_t>(figures.size())},
        DType::kI64, kept);
    CollectiveCall call;
    call.kind = CollectiveKind::kAllReduce;
    call.op = ReduceOp::kMax;
    call.inputs = {all};
    call.outputs = {all};
    SP_CHECK(communicator.run(group, std::move(call)));
    trial.microseconds = static_cast<double>(figures.back()) / 1e3;
    figures.pop_back();
    trial.peak_bytes_per_rank = figures.back();
    figures.pop_back();
    for (const std::int64_t bytes : figures) {
      trial.payload_bytes_per_rank += bytes;
    }
    return {};
  }

  // Returns the results of every rank of the target, in the order of its mesh.
  Result<Results> gather(Communicator& communicator, const Group& group,
                         std::vector<std::byte> own) const {
    const DeviceMesh& mesh = dst_.mesh();
    // Owned by the tensors, as in share().
    struct Exchanged {
      std::vector<std::byte> own;
      Results results;
    };
    const auto kept = std::make_shared<Exchanged>();
    Results& results = kept->results;
    results.resize(static_cast<std::size_t>(mesh.size()));
    const auto as_bytes = [&kept](void* data, std::size_t size) {
      return LocalTensor::wrap(data, Dims{static_cast<std::int64_t>(size)},
                               DType::kU8, kept);
    };
    CollectiveCall call;
    call.kind = CollectiveKind::kAllGather;
    if (mesh.contains(communicator.rank())) kept->own = std::move(own);
    call.inputs = {as_bytes(kept->own.data(), kept->own.size())};
    for (const std::int64_t rank : group.list(0)) {
      const auto index = mesh.index_of(rank);
      if (!index) {
        call.outputs.push_back(as_bytes(nullptr, 0));
        continue;
      }
      auto& result = results[static_cast<std::size_t>(*index)];
      const LocalRegion region =
          local_region(dst_, mesh.coordinate_at_index(*index));
      result.resize(static_cast<std::size_t>(region.numel() *
                                             item_size(dst_.meta().dtype())));
      call.outputs.push_back(as_bytes(result.data(), result.size()));
    }
    SP_CHECK(communicator.run(group, std::move(call)));
    return std::move(results);
  }

  const TensorSpec& src_;
  const TensorSpec& dst_;
  const MadeUpData& data_;
  const ProgramOf& program_of_;
  Group group_;  // of all ranks of both meshes
  Results* together_;
};

using RankRun =
    std::function<Result<Trial>(std::int64_t rank, Communicator& host)>;

// Runs each participating rank as a thread with a communicator of the host.
Result<Trial> on_threads(const Group::Ranks& ranks, const RankRun& run_rank) {
  std::vector<std::optional<Trial>> trials(ranks.size());
  ThreadWorld world(ranks.back() + 1);
  std::vector<std::unique_ptr<Communicator>> hosts;
  hosts.reserve(ranks.size());
  for (const std::int64_t rank : ranks) {
    hosts.push_back(world.communicator(rank));
  }
  const auto ends =
      run_ranks(std::move(hosts), [&](Communicator& host) -> Result<void> {
        const auto at =
            std::lower_bound(ranks.begin(), ranks.end(), host.rank());
        SP_ASSIGN(trials[static_cast<std::size_t>(at - ranks.begin())],
                  run_rank(host.rank(), host));
        return {};
      });
  // A rank's own error is more precise than the errors that follow from it on
  // other ranks.
  const Error* first = nullptr;
  for (const Result<void>& end : ends) {
    if (end) continue;
    if (first == nullptr || first->code == ErrorCode::kRankFailed) {
      first = &end.error();
    }
  }
  if (first != nullptr) return fail(*first);
  Trial all = *std::move(trials[0]);
  for (const auto& trial : trials) {
    if (trial && all.wrong.empty()) all.wrong = trial->wrong;
  }
  return all;
}

Result<Trial> on_mpi(const RankTrial& rank_trial, const Group::Ranks& ranks) {
#ifdef SHARDPROP_WITH_MPI
  SP_ASSIGN(const std::unique_ptr<Communicator> world, mpi_communicator());
  if (world->size() <= ranks.back()) {
    return fail(
        Error{ErrorCode::kInvalidArgument,
              "the meshes reach up to rank " + std::to_string(ranks.back()) +
                  ", MPI has started " + std::to_string(world->size()) +
                  (world->size() == 1 ? " process" : " processes"),
              "--run mpi",
              {},
              "start it by mpirun -n " + std::to_string(ranks.back() + 1)});
  }
  if (!std::binary_search(ranks.begin(), ranks.end(), world->rank())) {
    return Trial{.prints = false};
  }
  return rank_trial(*world, *world);
#else
  static_cast<void>(rank_trial);
  static_cast<void>(ranks);
  return fail(Error{ErrorCode::kEngineMissing,
                    "this shardprop was built without MPI",
                    "--run mpi",
                    {},
                    "build it where MPI is installed"});
#endif
}

// Runs each participating rank on one GPU of this machine.
Result<Trial> on_nccl(const RankTrial& rank_trial, const Group::Ranks& ranks) {
  SP_ASSIGN(const int devices, cuda_device_count());
  if (static_cast<std::int64_t>(ranks.size()) > devices) {
    return fail(Error{ErrorCode::kEngineMissing,
                      "the meshes have " + std::to_string(ranks.size()) +
                          " ranks, this machine has " +
                          std::to_string(devices) +
                          (devices == 1 ? " GPU" : " GPUs"),
                      "--run nccl",
                      {},
                      "try smaller meshes, or run on local or mpi"});
  }
  // The ranks of NCCL find each other through this world.
  ThreadWorld bootstrap(ranks.back() + 1);
  return on_threads(
      ranks, [&](std::int64_t rank, Communicator& host) -> Result<Trial> {
        const auto device =
            std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin();
        SP_ASSIGN(const std::unique_ptr<Communicator> communicator,
                  nccl_communicator(bootstrap.communicator(rank),
                                    {.device = static_cast<int>(device)}));
        return rank_trial(*communicator, host);
      });
}

}  // namespace

Result<Trial> try_out(std::string_view engine, const TensorSpec& src,
                      const TensorSpec& dst, const ProgramOf& program_of) {
  const MadeUpData data(src, dst);
  const Group::Ranks ranks = ranks_of(src, dst);
  SP_ASSIGN(const Group group, Group::ranks(ranks));
  if (engine == "mpi") {
    return on_mpi({src, dst, data, program_of, group, nullptr}, ranks);
  }
  if (engine == "local") {
    SP_CHECK(check_trial_memory(src, dst, ranks.size(), program_of));
  }
  Results results(static_cast<std::size_t>(dst.mesh().size()));
  const RankTrial rank_trial(src, dst, data, program_of, group, &results);
  Result<Trial> trial =
      engine == "nccl"
          ? on_nccl(rank_trial, ranks)
          : on_threads(ranks, [&](std::int64_t, Communicator& host) {
              return rank_trial(host, host);
            });
  if (trial) rank_trial.judge(results, *trial);
  return trial;
}

}  // namespace shardprop::cli

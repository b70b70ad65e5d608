// try_out() runs a redistribution of made-up data on real ranks. It compares
// every byte of every rank with the expected local tensor.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/execute/redistribute_program.h>
#include <shardprop/placement/tensor_spec.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop::cli {

struct TrialRank {
  std::int64_t rank = 0;
  std::int64_t bytes = 0;
  std::uint64_t digest = 0;  // FNV-1a of the rank's result
};

struct Trial {
  bool ok = true;
  std::string wrong;  // the first mismatch
  std::int64_t payload_bytes_per_rank = 0;
  std::int64_t peak_bytes_per_rank = 0;
  double microseconds = 0;       // of the slowest rank
  std::vector<TrialRank> ranks;  // those of the target
  bool prints = true;            // whether this process prints the result
};

using ProgramOf = std::function<Result<RedistributeProgram>(std::int64_t rank)>;

// `engine` is local, mpi or nccl. Under MPI every process makes the call; those
// whose rank takes no part return an empty trial.
//
// nccl runs one rank on each GPU of this machine.
//
// Errors: kInvalidArgument (fewer processes than ranks), kEngineMissing (for
// nccl: no library, driver or CUDA, or fewer GPUs than ranks), and those of the
// programs and of their runs.
Result<Trial> try_out(std::string_view engine, const TensorSpec& src,
                      const TensorSpec& dst, const ProgramOf& program_of);

}  // namespace shardprop::cli

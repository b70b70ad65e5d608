#include <shardprop/program/rank_programs.h>

#include <string>

namespace shardprop {

Result<void> check_simulated(const DeviceMesh& mesh) {
  const std::string most = std::to_string(kMostSimulatedRanks);
  if (mesh.size() > kMostSimulatedRanks) {
    return fail(ErrorCode::kInvalidArgument,
                "the mesh has " + std::to_string(mesh.size()) +
                    " ranks, and at most " + most + " are run as threads",
                "verify on a smaller mesh");
  }
  for (std::int64_t i = 0; i < mesh.size(); ++i) {
    const std::int64_t rank = mesh.rank_at_index(i);
    if (rank < kMostSimulatedRanks) continue;
    return fail(ErrorCode::kInvalidArgument,
                "the mesh has rank " + std::to_string(rank) +
                    ", and ranks that are run as threads are below " + most,
                "number the ranks from 0");
  }
  return {};
}

}  // namespace shardprop

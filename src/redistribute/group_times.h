// GroupTimes computes the times of collectives on every group of a mesh.
//
//   dp=2,tp=4, all-gather over {tp}: the time of the topology's best algorithm
//   for 4 ranks at that place
#pragma once

#include "base/index.h"
#include "redistribute/moves.h"
#include "redistribute/sharding_state.h"

#include <shardprop/mesh/topology.h>
#include <shardprop/redistribute/collective_cost.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <vector>

namespace shardprop::redistribute {

class GroupTimes {
 public:
  GroupTimes(const Topology& topology, const DeviceMesh& mesh,
             const ActiveDims& active, std::int64_t bucket_bytes);

  std::int64_t ranks(Mask group) const { return places_[group].ranks; }
  // `bytes` is defined as in collective_cost.h; 0 bytes take no time.
  std::int64_t nanoseconds(CollectiveKind kind, Mask group,
                           std::int64_t bytes) const;
  // Returns a lower bound of nanoseconds() for any size above 0.
  std::int64_t least_nanoseconds(Move move, Mask group) const {
    return least_[index(move)][group];
  }
  // Returns the same for any collective over `group`.
  std::int64_t least_nanoseconds(Mask group) const {
    std::int64_t least = least_nanoseconds(Move::kGather, group);
    for (const Move move :
         {Move::kReduceScatter, Move::kReduce, Move::kExchange}) {
      least = std::min(least, least_nanoseconds(move, group));
    }
    return least;
  }
  // A cell is the set of ranks that have fixed coordinates on the mesh dims
  // `outer`. The result is a lower bound, in nanoseconds, for each byte that a
  // cell receives and that none of its ranks holds. With `reduces`, bytes that
  // result from reducing partials count too.
  double least_per_byte(Mask outer, bool reduces) const;
  Mask all() const { return all_; }
  // The mesh dims whose groups span several nodes.
  Mask crossing() const { return crossing_; }
  std::int64_t memory_pass(std::int64_t bytes) const;
  Engine engine() const { return engine_; }

 private:
  static constexpr std::size_t kGroups = std::size_t{1} << kMaxPlannedDims;
  static constexpr std::size_t kKinds = std::size(kAllCollectiveKinds);
  static constexpr std::size_t kMoves = 7;

  const std::vector<AlgorithmLine>& lines(CollectiveKind kind,
                                          Mask group) const {
    return lines_[index(kind)][group];
  }

  Engine engine_;
  double memory_gbps_;
  std::int64_t bucket_bytes_;
  // Time of a full bucket, by kind and group.
  std::array<std::array<std::int64_t, kGroups>, kKinds> bucket_times_{};
  Mask all_ = 0;
  Mask crossing_ = 0;
  std::array<GroupPlace, kGroups> places_;
  std::array<std::array<std::vector<AlgorithmLine>, kGroups>, kKinds> lines_;
  std::array<std::array<std::int64_t, kGroups>, kMoves> least_{};
};

}  // namespace shardprop::redistribute

// MoveBound: what moving a tensor takes at least, read off the placements.
//
// A shard or a term that is not as the operator needs it takes part in some
// collective over its mesh dim, and what a rank lacks of its part must reach
// it. No plan costs less than the cheapest collective over any group that holds
// the mesh dim, for as many bytes as must come in.
#pragma once

#include <shardprop/mesh/collective_kind.h>
#include <shardprop/mesh/topology.h>
#include <shardprop/placement/layout.h>
#include <shardprop/placement/tensor_meta.h>

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/index.h"

namespace shardprop {

// What a strategy needs of one operand on one mesh dim.
enum class Change : std::uint8_t {
  kNone,        // as it is, or to be had without sending
  kCollective,  // only by a collective
  kImpossible,  // a shard cannot become a term
};
Change change(Placement given, Placement needed);

class MoveBound {
 public:
  MoveBound(const Topology& topology, const DeviceMesh& mesh);

  // Of a tensor with elements whose part on the mesh dim changes so, which is
  // Change::kCollective.
  std::int64_t at_least(int mesh_dim, Placement given, Placement needed) const {
    const auto m = index(mesh_dim);
    if (!given.is_shard()) return by_dim_[m].any;
    // What a shard becomes it becomes by a gather in the end, or an exchange.
    return needed.is_shard() ? by_dim_[m].shards : by_dim_[m].gather;
  }
  // Of the whole move; 0 where the layouts are equal.
  std::int64_t at_least(const Layout& given, const Layout& needed,
                        const TensorMeta& meta) const;

  // Of whatever brings a rank this many bytes that it lacks.
  std::int64_t coming(std::int64_t bytes) const;

 private:
  // Of powers of two and three equal steps between each two.
  static constexpr int kSteps = 200;
  // The least of collectives that a mesh dim is part of.
  struct OfDim {
    std::int64_t any = 0;
    std::int64_t gather = 0;
    std::int64_t shards = 0;  // gather or exchange
    void add(CollectiveKind kind, std::int64_t nanoseconds);
  };
  std::vector<OfDim> by_dim_;
  // [s]: any collective by which 2^(s/4) * (1 + s%4 / 4) bytes or more come.
  std::array<std::int64_t, kSteps> by_bytes_{};
  DeviceMesh mesh_;
};

}  // namespace shardprop

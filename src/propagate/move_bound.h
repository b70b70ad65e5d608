// MoveBound is a lower bound on the time of moving a tensor, derived from its
// placements.
//
// If a shard or partial differs from the operator's requirement, it takes part
// in some collective over its mesh dim. The missing bytes of a rank's part must
// also reach the rank. A plan therefore costs at least the cheapest collective
// over any group that contains the mesh dim. It also costs at least the
// cheapest collective that delivers the missing bytes.
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

// The change that a strategy requires of one operand on one mesh dim.
enum class Change : std::uint8_t {
  kNone,        // unchanged, or possible without sending
  kCollective,  // needs a collective
  kImpossible,  // a shard cannot become a partial
};
Change change(Placement given, Placement needed);

class MoveBound {
 public:
  MoveBound(const Topology& topology, const DeviceMesh& mesh);

  // The bound for a nonempty tensor whose placement on the mesh dim changes
  // like this. Precondition: the change is Change::kCollective.
  std::int64_t at_least(int mesh_dim, Placement given, Placement needed) const {
    const auto m = index(mesh_dim);
    if (!given.is_shard()) return by_dim_[m].any;
    // A shard changes by a gather in the end, or by an exchange.
    return needed.is_shard() ? by_dim_[m].shards : by_dim_[m].gather;
  }
  // The bound for the full move; 0 if the layouts are equal.
  std::int64_t at_least(const Layout& given, const Layout& needed,
                        const TensorMeta& meta) const;

  // The bound for any collective that brings a rank `bytes` missing bytes.
  std::int64_t coming(std::int64_t bytes) const;

 private:
  // Steps are powers of two and three equal steps between two of them.
  static constexpr int kSteps = 200;
  // The minimum over the collectives in which a mesh dim takes part.
  struct OfDim {
    std::int64_t any = 0;
    std::int64_t gather = 0;
    std::int64_t shards = 0;  // gather or exchange
    void add(CollectiveKind kind, std::int64_t nanoseconds);
  };
  std::vector<OfDim> by_dim_;
  // [s]: any collective that delivers 2^(s/4) * (1 + s%4 / 4) bytes or more
  std::array<std::int64_t, kSteps> by_bytes_{};
  DeviceMesh mesh_;
};

}  // namespace shardprop

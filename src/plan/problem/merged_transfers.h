// MergedTransfers plans redistributions over many mesh dims on a mesh of few dims.
// Neighbouring mesh dims that source and target treat alike are merged into
// one.
//
//   S(0),S(0),S(0),R -> R,R,R,R     on [2,2,2,2]: S(0),R -> R,R on [8,2]
//
// A move over a merged dim equals a move over its parts at once: the groups of
// ranks and the shards are the same, and so is the cost. Paths that treat
// merged dims differently on the way are not searched.
#pragma once

#include "redistribute/redistribute_rows.h"

#include <shardprop/redistribute/planner.h>

#include <cstdint>
#include <map>
#include <optional>

namespace shardprop {

class MergedTransfers {
 public:
  // Bit i: mesh dim i is merged with mesh dim i - 1.
  using Ties = std::uint32_t;

  explicit MergedTransfers(const Topology& topology,
                           const RedistributeOptions& options = {})
      : topology_(topology), options_(options) {}

  // Returns the neighbouring mesh dims that a layout treats alike. They are
  // replicated or partial in the same way, or they shard a tensor dim one
  // directly after the other. A strided layout has none. A move may merge the
  // dims that both its source and its target treat alike.
  static Ties uniform(const Layout& layout);
  // Returns the layout on the merged mesh. Precondition: the layout treats tied
  // dims alike.
  static Layout merged(const Layout& layout, Ties ties);

  // Returns the planner of the merged mesh, created on first use. Precondition:
  // at most kMaxPlannedDims of its dims are larger than 1.
  const RedistributePlanner& planner(const DeviceMesh& mesh, Ties ties);
  // Returns `plan` of the merged mesh as a plan of `mesh`.
  static RedistributePlan unmerged(RedistributePlan plan, Ties ties,
                                   const DeviceMesh& mesh,
                                   const TensorMeta& meta);

 private:
  const Topology topology_;
  const RedistributeOptions options_;
  std::map<Ties, RedistributePlanner> planners_;
};

}  // namespace shardprop

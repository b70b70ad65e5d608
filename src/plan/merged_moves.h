// Redistributions on a mesh of many dims, planned on one of few: neighbouring
// mesh dims that source and target treat alike move together.
//
//   S(0),S(0),S(0),R -> R,R,R,R     on [2,2,2,2]: S(0),R -> R,R on [8,2]
//
// A move over a merged dim is a move over its parts at once, of the same groups
// of ranks and shards as large, so that the cost is the same. What is given up
// are the paths that take merged dims apart on the way.
#pragma once

#include "redistribute/redistribute_rows.h"

#include <shardprop/redistribute/planner.h>

#include <cstdint>
#include <map>
#include <optional>

namespace shardprop {

class MergedMoves {
 public:
  // Bit i: mesh dim i moves as mesh dim i - 1 does.
  using Ties = std::uint32_t;

  explicit MergedMoves(const Topology& topology,
                       const RedistributeOptions& options = {})
      : topology_(topology), options_(options) {}

  // The neighbours that a layout treats alike: replicated or partial in the
  // same way, or cutting a tensor dim one right after the other. None where it
  // is strided. Source and target treat alike what both do.
  static Ties alike(const Layout& layout);
  // The layout on the merged mesh. Precondition: it treats tied dims alike.
  static Layout merged(const Layout& layout, Ties ties);

  // Of the merged mesh, made when first asked for. Precondition: at most
  // kMaxPlannedDims of its dims are larger than 1.
  const RedistributePlanner& planner(const DeviceMesh& mesh, Ties ties);
  // `plan` of the merged mesh as one of `mesh`.
  static RedistributePlan unmerged(RedistributePlan plan, Ties ties,
                                   const DeviceMesh& mesh,
                                   const TensorMeta& meta);

 private:
  const Topology topology_;
  const RedistributeOptions options_;
  std::map<Ties, RedistributePlanner> planners_;
};

}  // namespace shardprop

// RedistributePlanner::Body stores the state of a planner; RedistributeRows
// and StridedCosts share it.
#pragma once

#include "redistribute/layout_graph.h"
#include "redistribute/move_price.h"
#include "redistribute/search.h"
#include "redistribute/sharding_state.h"

#include <shardprop/redistribute/planner.h>

#include <utility>

namespace shardprop {

struct RedistributePlanner::Body {
  Body(DeviceMesh the_mesh, const Topology& topology,
       const RedistributeOptions& the_options)
      : mesh(std::move(the_mesh)),
        options(the_options),
        active(mesh),
        times(topology, mesh, active, the_options.bucket_bytes) {}

  // Returns the plan that follows this path. Precondition: the layouts are
  // canonical.
  RedistributePlan along(const redistribute::Path& path,
                         const redistribute::Alphabet& alphabet,
                         const Layout& from, const Layout& to,
                         const TensorMeta& meta) const;

  DeviceMesh mesh;
  RedistributeOptions options;
  redistribute::ActiveDims active;
  redistribute::GroupTimes times;
  redistribute::LayoutGraphs graphs;
};

// With maximal padding, a tensor takes its size on every rank. Sizes and times
// beyond this limit would overflow. Error: kRedistributeMeshTooLarge.
Result<void> check_size(const DeviceMesh& mesh, const TensorMeta& meta);

}  // namespace shardprop

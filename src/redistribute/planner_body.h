// What a RedistributePlanner holds; shared with the table of all pairs.
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

  // The plan that takes this path; layouts canonical.
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

// Padded to the utmost, a tensor takes its size on every rank; sizes and times
// beyond this would not fit their integers. Error: kRedistributeMeshTooLarge.
Result<void> check_size(const DeviceMesh& mesh, const TensorMeta& meta);

}  // namespace shardprop

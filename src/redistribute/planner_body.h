// What a RedistributePlanner holds; shared with the table of all pairs.
#pragma once

#include "redistribute/layout_graph.h"
#include "redistribute/move_price.h"
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

  DeviceMesh mesh;
  RedistributeOptions options;
  redistribute::ActiveDims active;
  redistribute::GroupTimes times;
  redistribute::LayoutGraphs graphs;
};

}  // namespace shardprop

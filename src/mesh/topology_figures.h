// Checks of single topology figures. check_topology() applies them to all
// figures; a file reader calls them one by one and adds the location.
#pragma once

#include <shardprop/mesh/topology.h>

namespace shardprop {

// Error: kTopologyFigure, without a location.
Result<void> check_figure(const TopologyField& field, const Figure& figure);
Result<void> check_line(const MeasuredLine& line);

}  // namespace shardprop

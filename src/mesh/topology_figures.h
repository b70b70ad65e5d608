// What a figure of a topology may be, one by one: check_topology() looks at all
// of them, and who reads a file says where each stands.
#pragma once

#include <shardprop/mesh/topology.h>

namespace shardprop {

// Error: kTopologyFigure, without a location.
Result<void> check_figure(const TopologyField& field, const Figure& figure);
Result<void> check_line(const MeasuredLine& line);

}  // namespace shardprop

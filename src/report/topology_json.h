// A Topology as JSON, figures with their units and sources, and back.
#pragma once

#include "report/json_cursor.h"

#include <shardprop/mesh/topology.h>

namespace shardprop {

LinearJson topology_json(const Topology& topology);
Topology read_topology(const JsonCursor& at);

}  // namespace shardprop

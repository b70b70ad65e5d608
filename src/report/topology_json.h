// Writes a Topology as JSON, figures with their units and sources, and reads it
// back.
#pragma once

#include "io/json_text.h"
#include "report/json_cursor.h"

#include <shardprop/mesh/topology.h>

namespace shardprop {

void write_topology(JsonText& json, const Topology& topology);
Topology read_topology(const JsonCursor& at);

}  // namespace shardprop

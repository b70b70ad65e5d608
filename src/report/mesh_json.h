// Writes a mesh and its dims as JSON.
#pragma once

#include "io/json_text.h"

#include <shardprop/mesh/device_mesh.h>

namespace shardprop {

// {"dims": [{"name": "dp", "size": 8}, ...]}
void write_mesh(JsonText& json, const DeviceMesh& mesh);

// ["dp", "tp"]
void write_dim_names(JsonText& json, const DimIndices& mesh_dims,
                     const DeviceMesh& mesh);

}  // namespace shardprop

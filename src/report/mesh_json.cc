#include "report/mesh_json.h"

namespace shardprop {

void write_mesh(JsonText& json, const DeviceMesh& mesh) {
  json.open('{').key("dims").list(mesh.dims(), [&](const MeshDim& dim) {
    json.open('{').member("name", dim.name).member("size", dim.size);
    json.close('}');
  });
  json.close('}');
}

void write_dim_names(JsonText& json, const DimIndices& mesh_dims,
                     const DeviceMesh& mesh) {
  json.list(mesh_dims,
            [&](const std::int32_t dim) { json.text(mesh.name(dim)); });
}

}  // namespace shardprop

#include "io/read_shardings.h"

#include "base/try.h"
#include "io/json_reader.h"

#include <algorithm>
#include <string>
#include <utility>

namespace shardprop {
namespace {

// The entry of a tensor as it is written, before its layout is read.
struct WrittenTensor {
  ShardedTensor tensor;
  std::vector<std::string> mesh_dims;
  std::vector<std::string> placements;
  std::vector<std::vector<std::string>> shard_orders;  // one per tensor dim
  std::string place;
};

std::vector<std::string> read_strings(JsonReader& json) {
  std::vector<std::string> out;
  json.array([&] { out.emplace_back(json.string()); });
  return out;
}

WrittenTensor read_sharded_tensor(JsonReader& json) {
  WrittenTensor out;
  out.place = json.path();
  json.object([&](std::string_view key) {
    if (key == "name") {
      out.tensor.name = json.string();
    } else if (key == "argument") {
      out.tensor.argument = json.string();
    } else if (key == "target") {
      out.tensor.target = json.string();
    } else if (key == "kind") {
      out.tensor.kind = parse_output_kind(json.string());
    } else if (key == "mesh_dims") {
      out.mesh_dims = read_strings(json);
    } else if (key == "placements") {
      out.placements = read_strings(json);
    } else if (key == "shard_order") {
      json.object([&](std::string_view) {
        out.shard_orders.push_back(read_strings(json));
      });
    } else {
      json.skip();
    }
  });
  if (out.tensor.argument.empty()) out.tensor.argument = out.tensor.name;
  return out;
}

// Adds "@1" to the placements of mesh dims that do not shard in mesh order.
Result<void> add_order(WrittenTensor& written) {
  for (const std::vector<std::string>& cuts : written.shard_orders) {
    std::vector<std::ptrdiff_t> places;
    for (const std::string& dim : cuts) {
      const auto found =
          std::find(written.mesh_dims.begin(), written.mesh_dims.end(), dim);
      const std::ptrdiff_t place = found - written.mesh_dims.begin();
      if (place >= static_cast<std::ptrdiff_t>(written.placements.size())) {
        return fail(ErrorCode::kShardOrder,
                    "`shard_order` names `" + dim +
                        "`, which `mesh_dims` does not list");
      }
      places.push_back(place);
    }
    if (std::is_sorted(places.begin(), places.end())) continue;
    for (std::size_t at = 0; at < places.size(); ++at) {
      written.placements[static_cast<std::size_t>(places[at])] +=
          "@" + std::to_string(at);
    }
  }
  return {};
}

Result<ShardedTensor> tensor_of(WrittenTensor written) {
  if (written.tensor.name.empty()) {
    return fail(Error{ErrorCode::kFieldMissing,
                      "the tensor has no name",
                      written.place,
                      {},
                      "give `name`, the value in the single-device graph"});
  }
  if (written.placements.empty()) return std::move(written.tensor);
  const auto layout = [&]() -> Result<Layout> {
    SP_CHECK(add_order(written));
    return parse_layout(written.placements);
  }();
  if (!layout) return fail(Error(layout.error()).at(written.place));
  written.tensor.layout = *layout;
  return std::move(written.tensor);
}

struct WrittenMesh {
  std::vector<MeshDim> dims;
  std::vector<std::int64_t> ranks;
};

WrittenMesh read_mesh(JsonReader& json) {
  WrittenMesh out;
  json.object([&](std::string_view key) {
    if (key == "dims") {
      json.array([&] {
        MeshDim& dim = out.dims.emplace_back();
        json.object([&](std::string_view field) {
          if (field == "name") {
            dim.name = json.string();
          } else if (field == "size") {
            dim.size = json.integer();
          } else {
            json.skip();
          }
        });
      });
    } else if (key == "ranks") {
      json.array([&] { out.ranks.push_back(json.integer()); });
    } else {
      json.skip();
    }
  });
  return out;
}

NamedGroups read_groups(JsonReader& json) {
  NamedGroups out;
  json.object([&](std::string_view key) {
    if (key == "name") {
      out.name = json.string();
    } else if (key == "ranks") {
      json.array([&] {
        auto& ranks = out.ranks.emplace_back();
        json.array([&] { ranks.push_back(json.integer()); });
      });
    } else {
      json.skip();
    }
  });
  return out;
}

Result<DeviceMesh> mesh_of(const WrittenMesh& written) {
  auto mesh = written.ranks.empty()
                  ? DeviceMesh::create(written.dims)
                  : DeviceMesh::from_ranks(written.dims, written.ranks);
  if (!mesh) return fail(Error(mesh.error()).at("$.mesh"));
  return mesh;
}

Result<std::vector<ShardedTensor>> tensors_of(
    std::vector<WrittenTensor> written) {
  std::vector<ShardedTensor> out;
  for (WrittenTensor& one : written) {
    SP_ASSIGN(ShardedTensor tensor, tensor_of(std::move(one)));
    out.push_back(std::move(tensor));
  }
  return out;
}

}  // namespace

Result<ShardingsFile> read_shardings(std::string_view text) {
  StringArena arena;
  JsonReader json(text, arena);
  ShardingsFile out;
  std::string schema;
  std::optional<WrittenMesh> mesh;
  std::vector<WrittenTensor> inputs;
  std::vector<WrittenTensor> outputs;
  bool has_inputs = false;
  json.object([&](std::string_view key) {
    if (key == "schema") {
      schema = json.string();
    } else if (key == "mesh") {
      mesh = read_mesh(json);
    } else if (key == "groups") {
      json.array([&] { out.groups.push_back(read_groups(json)); });
    } else if (key == "inputs") {
      has_inputs = true;
      json.array([&] { inputs.push_back(read_sharded_tensor(json)); });
    } else if (key == "outputs") {
      json.array([&] { outputs.push_back(read_sharded_tensor(json)); });
    } else {
      json.skip();
    }
  });
  json.end();
  if (json.error()) return fail(*json.error());
  if (schema != kShardingsSchema) {
    return fail(Error{ErrorCode::kSchemaVersion,
                      "the schema is `" + schema + "`, not `" +
                          std::string(kShardingsSchema) + "`",
                      "$.schema",
                      {},
                      "give the shardings.json of `shardprop emit`, or write "
                      "one with this schema"});
  }
  if (!has_inputs) {
    return fail(Error{ErrorCode::kFieldMissing,
                      "the layouts of the inputs are missing",
                      "$.inputs",
                      {},
                      "list each input with its `name` and `placements`"});
  }
  if (mesh) {
    SP_ASSIGN(out.mesh, mesh_of(*mesh));
  }
  SP_ASSIGN(out.inputs, tensors_of(std::move(inputs)));
  SP_ASSIGN(out.outputs, tensors_of(std::move(outputs)));
  return out;
}

}  // namespace shardprop

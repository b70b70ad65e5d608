// Reads shardings.json: the text of shardings_json(), or one that a person
// wrote for programs of their own.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/program/rank_programs.h>

#include <optional>
#include <string_view>
#include <vector>

namespace shardprop {

inline constexpr std::string_view kShardingsSchema = "shardprop.shardings/1";

struct ShardingsFile {
  std::optional<DeviceMesh> mesh;
  std::vector<NamedGroups> groups;
  std::vector<ShardedTensor> inputs;
  std::vector<ShardedTensor> outputs;
};

// Errors, at their place in the text: those of JsonReader, kSchemaVersion,
// kFieldMissing, and those of meshes and layouts.
Result<ShardingsFile> read_shardings(std::string_view text);

}  // namespace shardprop

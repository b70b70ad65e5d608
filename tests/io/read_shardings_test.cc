// shardings.json as `emit` writes it, as a person writes it, and malformed.
#include "io/read_shardings.h"

#include "support/result_checks.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>

namespace shardprop {
namespace {

using testing::value_of;

constexpr const char* kSchema = R"j("schema": "shardprop.shardings/1")j";

std::string with(const std::string& members) {
  return "{" + std::string(kSchema) + ", " + members + "}";
}

// As `emit` writes it.
std::string emitted() {
  return with(
      R"j("mesh": {"dims": [{"name": "a", "size": 2}, {"name": "b", "size": 2}],
                  "ranks": [0, 1, 2, 3]},
         "groups": [{"name": "shardprop_b", "mesh_dims": ["b"],
                     "ranks": [[0, 1], [2, 3]]}],
         "inputs": [{"name": "w", "kind": "parameter", "argument": "p_w",
                     "dtype": "f32", "shape": [8], "mesh_dims": ["a", "b"],
                     "placements": ["S(0)", "S(0)"],
                     "shard_order": {"0": ["b", "a"]},
                     "local_shapes": [[2]]}],
         "outputs": [{"name": "y", "argument": "mm", "mesh_dims": ["a", "b"],
                      "placements": ["R", "S(1)"],
                      "shard_order": {"1": ["b"]}}],
         "files": ["program.pt2"])j");
}

TEST_CASE("the shardings of emit are read") {
  const ShardingsFile read = value_of(read_shardings(emitted()));
  REQUIRE(read.mesh);
  CHECK(to_string(*read.mesh) == "a=2,b=2");
  REQUIRE(read.groups.size() == 1);
  CHECK(read.groups[0].ranks[1] == std::vector<std::int64_t>{2, 3});
  REQUIRE(read.inputs.size() == 1);
  CHECK(read.inputs[0].argument == "p_w");
  CHECK(to_string(*read.inputs[0].layout) == "S(0)@1,S(0)@0");
  CHECK(to_string(*read.outputs[0].layout) == "R,S(1)");
}

TEST_CASE("a name is enough, and an output may have no layout") {
  const ShardingsFile read = value_of(read_shardings(
      with(R"j("inputs": [{"name": "x", "placements": ["S(0)@1", "S(0)@0"]}],
              "outputs": [{"name": "y"}])j")));
  CHECK_FALSE(read.mesh);
  CHECK(read.inputs[0].argument == "x");
  CHECK(to_string(*read.inputs[0].layout) == "S(0)@1,S(0)@0");
  CHECK_FALSE(read.outputs[0].layout);
}

TEST_CASE("malformed shardings are refused at their place") {
  const std::pair<std::string, ErrorCode> cases[] = {
      {"{", ErrorCode::kJsonSyntax},
      {"{}", ErrorCode::kSchemaVersion},
      {with(R"j("groups": [])j"), ErrorCode::kFieldMissing},
      {with(R"j("inputs": [{}])j"), ErrorCode::kFieldMissing},
      {with(R"j("inputs": 3)j"), ErrorCode::kFieldType},
      {with(R"j("inputs": [{"name": "x", "placements": ["Q"]}])j"),
       ErrorCode::kPlacementSyntax},
      {with(R"j("inputs": [{"name": "x", "placements": ["S(0)"],
                           "mesh_dims": ["a"],
                           "shard_order": {"0": ["b"]}}])j"),
       ErrorCode::kShardOrder},
      {with(R"j("mesh": {"dims": [{"name": "a", "size": 0}]}, "inputs": [])j"),
       ErrorCode::kMeshSize},
  };
  for (const auto& [text, code] : cases) {
    CAPTURE(text);
    CHECK_CODE(read_shardings(text), code);
  }
  const auto at = read_shardings(with(
      R"j("inputs": [{"name": "x"}, {"name": "y", "placements": ["Q"]}])j"));
  REQUIRE_FALSE(at);
  CHECK(at.error().location.find("$.inputs[1]") != std::string::npos);
}

TEST_CASE("damaged shardings are read or refused") {
  const std::string whole = emitted();
  std::size_t refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string shorter = whole;
    shorter.erase(at, 1);
    refused += read_shardings(shorter) ? 0 : 1;
    refused += read_shardings(std::string_view(whole).substr(0, at)) ? 0 : 1;
    std::string other = whole;
    other[at] = '7';
    refused += read_shardings(other) ? 0 : 1;
  }
  CHECK(refused > whole.size());
}

}  // namespace
}  // namespace shardprop

// Every mesh that is refused, with its code.
#include <shardprop/mesh/device_mesh.h>

#include <doctest/doctest.h>

#include "support/result_checks.h"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

DeviceMesh valid_mesh(std::string_view text) {
  return value_of(DeviceMesh::parse(text));
}

TEST_CASE("texts that are no mesh") {
  for (const char* text : {"", ",", "2,", ",2", "dp", "dp=", "dp=x", "dp=2x",
                           "dp=2;tp=2", "dp=+2", "2,,2", "dp=1.5", "dp= 2"}) {
    CAPTURE(text);
    CHECK_CODE(DeviceMesh::parse(text), ErrorCode::kMeshSyntax);
  }
  std::string many = "2";
  for (int i = 0; i < 100'000; ++i) many += ",2";
  CHECK_CODE(DeviceMesh::parse(many), ErrorCode::kMeshSyntax);
}

TEST_CASE("sizes of zero, negative and absurd") {
  for (const char* text : {"0", "dp=0", "dp=-2", "dp=2,tp=0", "16777217",
                           "4096,4097", "99999999999999999999",
                           "dp=9223372036854775807,tp=9223372036854775807"}) {
    CAPTURE(text);
    CHECK_CODE(DeviceMesh::parse(text), ErrorCode::kMeshSize);
  }
  CHECK(DeviceMesh::parse("4096,4096").has_value());
  CHECK_CODE(DeviceMesh::create({}), ErrorCode::kMeshSize);
}

TEST_CASE("names that are doubled or malformed") {
  for (const char* text : {"dp=2,dp=2", "=2", "a-b=2", "1a=2", "d p=2",
                           "2,d0=2", "dp =2", "dé=2"}) {
    CAPTURE(text);
    CHECK_CODE(DeviceMesh::parse(text), ErrorCode::kMeshDimName);
  }
  CHECK(DeviceMesh::parse("_a1=2").has_value());
  CHECK(DeviceMesh::parse(std::string(64, 'a') + "=2").has_value());
  CHECK_CODE(DeviceMesh::parse(std::string(65, 'a') + "=2"),
             ErrorCode::kMeshDimName);
}

TEST_CASE("too many dims") {
  CHECK(DeviceMesh::parse("1,1,1,1,1,1,1,1").has_value());
  CHECK_CODE(DeviceMesh::parse("1,1,1,1,1,1,1,1,1"),
             ErrorCode::kMeshTooManyDims);
  const MeshDim parts[] = {{"a", 1}, {"b", 1}};
  CHECK_CODE(valid_mesh("1,1,1,1,1,1,1,1").unflatten(0, parts),
             ErrorCode::kMeshTooManyDims);
}

TEST_CASE("an unknown dim, with the nearest one") {
  const DeviceMesh mesh = valid_mesh("dp=2,tp=4");
  const auto missing = mesh.dim_index("tq");
  CHECK_CODE(missing, ErrorCode::kMeshDimUnknown);
  CHECK(missing.error().help == "did you mean `tp`?");
  CHECK(missing.error().notes ==
        std::vector<std::string>{"the mesh is dp=2,tp=4"});
  const std::string_view names[] = {"dp", "pp"};
  CHECK_CODE(mesh.slice(names), ErrorCode::kMeshDimUnknown);
  CHECK_CODE(mesh.submesh("pp", 0), ErrorCode::kMeshDimUnknown);
}

TEST_CASE("ranks that make no mesh") {
  const MeshDim dims[] = {{"a", 2}, {"b", 2}};
  const std::vector<std::vector<std::int64_t>> wrong = {
      {}, {0, 1, 2}, {0, 1, 2, 3, 4}, {0, 1, 2, 2}, {0, 1, -1, 2}};
  for (const auto& ranks : wrong) {
    CHECK_CODE(DeviceMesh::from_ranks(dims, ranks), ErrorCode::kMeshRanks);
  }
  CHECK_CODE(DeviceMesh::create(dims, -1), ErrorCode::kMeshRanks);
  CHECK_CODE(DeviceMesh::create(dims, kHuge), ErrorCode::kMeshRanks);
  CHECK_CODE(DeviceMesh::create(dims, kHuge - 2), ErrorCode::kMeshRanks);
  CHECK(value_of(DeviceMesh::create(dims, kHuge - 3)).contains(kHuge));
  const std::int64_t far[] = {kHuge, 0, kHuge - 1, 1};
  CHECK(value_of(DeviceMesh::from_ranks(dims, far)).index_of(1) == 3);
}

TEST_CASE("slices that do not exist") {
  const DeviceMesh mesh = valid_mesh("dp=2,tp=4");
  const std::string_view twice[] = {"dp", "dp"};
  const std::string_view dp[] = {"dp"};
  CHECK_CODE(mesh.slice({}), ErrorCode::kMeshReshape);
  CHECK_CODE(mesh.slice(twice), ErrorCode::kMeshDimName);
  CHECK_CODE(mesh.slice(dp, Coordinate{0}), ErrorCode::kMeshCoordinate);
  CHECK_CODE(mesh.slice(dp, Coordinate{0, 4}), ErrorCode::kMeshCoordinate);
  CHECK_CODE(mesh.slice(dp, Coordinate{-1, 0}), ErrorCode::kMeshCoordinate);
  CHECK_CODE(mesh.submesh("tp", 4), ErrorCode::kMeshCoordinate);
  CHECK_CODE(mesh.submesh("tp", -1), ErrorCode::kMeshCoordinate);
  CHECK_CODE(valid_mesh("dp=2").submesh("dp", 0), ErrorCode::kMeshReshape);
}

TEST_CASE("dims that cannot be flattened or unflattened") {
  const DeviceMesh mesh = valid_mesh("dp=2,tp=4");
  const auto flatten = [&](std::vector<std::int32_t> dims, std::string name) {
    return mesh.flatten(dims, std::move(name));
  };
  CHECK_CODE(flatten({}, "x"), ErrorCode::kMeshReshape);
  CHECK_CODE(flatten({0, 0}, "x"), ErrorCode::kMeshReshape);
  CHECK_CODE(flatten({0, 2}, "x"), ErrorCode::kMeshReshape);
  CHECK_CODE(flatten({-1}, "x"), ErrorCode::kMeshReshape);
  CHECK_CODE(flatten({0}, "tp"), ErrorCode::kMeshDimName);
  CHECK_CODE(flatten({0, 1}, "not a name"), ErrorCode::kMeshDimName);

  const auto unflatten = [&](int dim, std::vector<MeshDim> parts) {
    return mesh.unflatten(dim, parts);
  };
  CHECK_CODE(unflatten(2, {{"a", 4}}), ErrorCode::kMeshReshape);
  CHECK_CODE(unflatten(-1, {{"a", 4}}), ErrorCode::kMeshReshape);
  CHECK_CODE(unflatten(1, {{"a", 2}, {"b", 3}}), ErrorCode::kMeshReshape);
  CHECK_CODE(unflatten(1, {{"a", 2}, {"a", 2}}), ErrorCode::kMeshDimName);
  CHECK_CODE(unflatten(1, {{"a", 2}, {"dp", 2}}), ErrorCode::kMeshDimName);
  CHECK_CODE(unflatten(1, {{"a", -2}, {"b", -2}}), ErrorCode::kMeshSize);
  CHECK_CODE(unflatten(1, {}), ErrorCode::kMeshSize);
}

}  // namespace
}  // namespace shardprop

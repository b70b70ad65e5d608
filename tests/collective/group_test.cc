#include <shardprop/collective/group.h>

#include "support/result_checks.h"

#include <unordered_set>

namespace shardprop {
namespace {

using testing::value_of;

TEST_CASE("a group is a partition, however it is named") {
  const DeviceMesh mesh = value_of(DeviceMesh::parse("dp=2,tp=3"));
  const Group tp = value_of(Group::mesh_dim(mesh, "tp"));
  CHECK(tp == value_of(Group::lists({{0, 1, 2}, {3, 4, 5}})));
  CHECK(tp == value_of(Group::mesh_dim(mesh, 1)));
  CHECK(tp.hash() == value_of(Group::mesh_dim(mesh, 1)).hash());
  CHECK(to_string(tp) == "{0,1,2} {3,4,5}");
  CHECK(tp.size() == 3);
  CHECK(tp.largest_rank() == 5);

  const Group dp = value_of(Group::mesh_dim(mesh, "dp"));
  CHECK(to_string(dp) == "{0,3} {1,4} {2,5}");
  CHECK_FALSE(dp == tp);

  const std::int32_t both[] = {1, 0};
  CHECK(to_string(value_of(Group::mesh_dims(mesh, both))) == "{0,3,1,4,2,5}");
  CHECK(value_of(Group::mesh_dims(mesh, {})).size() == 1);
  CHECK(value_of(Group::mesh(value_of(DeviceMesh::parse("x=4")))) ==
        value_of(Group::world(4)));
  CHECK(to_string(value_of(Group::world(100))) == "{0,1,2,3,4,5,..,99}");
}

TEST_CASE("members know their place") {
  const Group group = value_of(Group::lists({{4, 2}, {0, 7}}));
  CHECK(group.place_of(2) == Group::Place{0, 1});
  CHECK(group.place_of(0) == Group::Place{1, 0});
  CHECK_FALSE(group.place_of(1).has_value());
}

TEST_CASE("equal sub-lists in another partition are another group") {
  const Group one = value_of(Group::lists({{0, 1}, {2, 3}}));
  const Group other = value_of(Group::lists({{0, 1}, {4, 5}}));
  CHECK_FALSE(one == other);
  CHECK(std::unordered_set<Group>{one, other, one}.size() == 2);
}

TEST_CASE("what is no group is said") {
  const DeviceMesh mesh = value_of(DeviceMesh::parse("dp=2,tp=3"));
  const std::int32_t twice[] = {0, 0};
  const std::int32_t beyond[] = {2};
  CHECK_CODE(Group::ranks({}), ErrorCode::kGroup);
  CHECK_CODE(Group::lists({}), ErrorCode::kGroup);
  CHECK_CODE(Group::lists({{}, {}}), ErrorCode::kGroup);
  CHECK_CODE(Group::ranks({1, 2, 1}), ErrorCode::kGroup);
  CHECK_CODE(Group::ranks({-1}), ErrorCode::kGroup);
  CHECK_CODE(Group::lists({{0, 1}, {2}}), ErrorCode::kGroup);
  CHECK_CODE(Group::lists({{0, 1}, {1, 2}}), ErrorCode::kGroup);
  CHECK_CODE(Group::mesh(mesh), ErrorCode::kGroup);
  CHECK_CODE(Group::mesh_dim(mesh, 2), ErrorCode::kGroup);
  CHECK_CODE(Group::mesh_dim(mesh, -1), ErrorCode::kGroup);
  CHECK_CODE(Group::mesh_dim(mesh, "pp"), ErrorCode::kMeshDimUnknown);
  CHECK_CODE(Group::mesh_dims(mesh, twice), ErrorCode::kGroup);
  CHECK_CODE(Group::mesh_dims(mesh, beyond), ErrorCode::kGroup);
  CHECK_CODE(Group::world(0), ErrorCode::kGroup);
}

}  // namespace
}  // namespace shardprop

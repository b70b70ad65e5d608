#include <shardprop/collective/group.h>

#include "collective/group_key.h"
#include "support/result_checks.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <unordered_set>
#include <vector>

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

TEST_CASE("groups of a mesh are the lists they stand for") {
  const DeviceMesh plain = value_of(DeviceMesh::parse("2,3,4"));
  const DeviceMesh strided =
      value_of(plain.flatten(std::vector<std::int32_t>{0, 2}, "merged"));
  std::vector<std::int64_t> shuffled;
  for (std::int64_t i = 0; i < 24; ++i) shuffled.push_back(i * 5 % 24);
  const DeviceMesh listed =
      value_of(DeviceMesh::from_ranks(plain.dims(), shuffled));
  for (const DeviceMesh& mesh : {plain, strided, listed}) {
    std::vector<std::int32_t> dims(static_cast<std::size_t>(mesh.ndim()));
    std::iota(dims.begin(), dims.end(), 0);
    do {
      for (std::size_t count = 0; count <= dims.size(); ++count) {
        const auto some = std::span(dims).first(count);
        const Group group = value_of(Group::mesh_dims(mesh, some));
        std::vector<Group::Ranks> lists;
        for (std::int64_t i = 0; i < mesh.size(); ++i) {
          const Coordinate at = mesh.coordinate_at_index(i);
          const Group::Ranks ranks = mesh.group(some, at).ranks();
          if (ranks[0] == mesh.rank_at(at)) lists.push_back(ranks);
          const auto place = group.place_of(mesh.rank_at(at));
          REQUIRE(place);
          CHECK(group.rank(place->list, place->index) == mesh.rank_at(at));
        }
        const Group written = value_of(Group::lists(lists));
        CHECK(group == written);
        CHECK(group.hash() == written.hash());
        CHECK(group.largest_rank() == 23);
        CHECK_FALSE(group.place_of(24).has_value());
      }
    } while (std::next_permutation(dims.begin(), dims.end()));
  }
}

TEST_CASE("a group of 16 million ranks is a handful of numbers") {
  const DeviceMesh mesh = value_of(DeviceMesh::parse("256,256,256"));
  const Group group = value_of(Group::mesh_dim(mesh, 1));
  CHECK(group.size() == 256);
  CHECK(group.num_lists() == 65536);
  CHECK(group.place_of(70'000) == Group::Place{256 + 112, 17});
  CHECK(group.rank(256 + 112, 17) == 70'000);
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

TEST_CASE(
    "the key of a partition depends on every rank, whatever its form in "
    "memory") {
  // Group::hash() looks at every second rank of these.
  constexpr std::int64_t kRanks = 2048;
  Group::Ranks ascending(kRanks);
  std::iota(ascending.begin(), ascending.end(), 0);
  Group::Ranks swapped = ascending;
  std::swap(swapped[1], swapped[3]);
  const Group one = value_of(Group::ranks(ascending));
  const Group other = value_of(Group::ranks(swapped));
  CHECK_FALSE(one == other);
  CHECK(one.hash() == other.hash());
  CHECK(collective::wire_key(one) != collective::wire_key(other));
  const Group mesh = value_of(Group::world(kRanks));
  CHECK(mesh == one);
  CHECK(collective::wire_key(mesh) == collective::wire_key(one));
}

}  // namespace
}  // namespace shardprop

#include <shardprop/mesh/device_mesh.h>

#include <doctest/doctest.h>

#include "support/result_checks.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;
using Ranks = std::vector<std::int64_t>;

DeviceMesh mesh_of(std::string_view text) {
  return value_of(DeviceMesh::parse(text));
}

TEST_CASE("a default mesh is one rank") {
  const DeviceMesh mesh;
  CHECK(to_string(mesh) == "d0=1");
  CHECK(mesh.size() == 1);
  CHECK(mesh.rank_at({0}) == 0);
  CHECK(mesh == mesh_of("1"));
}

TEST_CASE("ranks run in row-major order") {
  const DeviceMesh mesh = mesh_of("dp=2,tp=4");
  CHECK(mesh.ndim() == 2);
  CHECK(mesh.size() == 8);
  CHECK(mesh.size(1) == 4);
  CHECK(mesh.name(0) == "dp");
  CHECK(mesh.is_strided());
  CHECK(mesh.rank_at({1, 2}) == 6);
  CHECK(mesh.coordinate_of(6) == Coordinate{1, 2});
  CHECK(mesh.index_at({1, 2}) == 6);
  CHECK(mesh.coordinate_at_index(6) == Coordinate{1, 2});
  CHECK_FALSE(mesh.coordinate_of(8).has_value());
  CHECK_FALSE(mesh.contains(-1));
}

TEST_CASE("a mesh may start at any rank") {
  const MeshDim dims[] = {{"dp", 2}, {"tp", 2}};
  const DeviceMesh mesh = value_of(DeviceMesh::create(dims, 8));
  CHECK(mesh.rank_at({1, 1}) == 11);
  CHECK(mesh.coordinate_of(10) == Coordinate{1, 0});
  CHECK_FALSE(mesh.contains(7));
  CHECK_FALSE(mesh == mesh_of("dp=2,tp=2"));
}

TEST_CASE("dims are found by name") {
  const DeviceMesh mesh = mesh_of("dp=2,tp=4");
  CHECK(mesh.find_dim("tp") == 1);
  CHECK_FALSE(mesh.find_dim("pp").has_value());
  CHECK(mesh.dim_index("dp") == 0);
}

TEST_CASE("groups of a dim") {
  const DeviceMesh mesh = mesh_of("dp=2,tp=4");
  CHECK(mesh.group(0, {0, 3}).ranks() == Ranks{3, 7});
  CHECK(mesh.group(1, {1, 0}).ranks() == Ranks{4, 5, 6, 7});
  CHECK(mesh.group_count(0) == 4);
  CHECK(mesh.group_at(0, 3) == mesh.group(0, {1, 3}));
  const std::int32_t across[] = {1, 0};
  CHECK(mesh.group(across, {0, 0}).ranks() == Ranks{0, 4, 1, 5, 2, 6, 3, 7});
  CHECK(mesh.group(std::span<const std::int32_t>(), {1, 3}).ranks() ==
        Ranks{7});
  const RankGroup group = mesh.group(0, {1, 3});
  CHECK(group.index_of(7) == 1);
  CHECK_FALSE(group.index_of(4).has_value());
  CHECK(RankGroup().ranks() == Ranks{0});
}

TEST_CASE("slices and sub-meshes") {
  const DeviceMesh mesh = mesh_of("pp=2,dp=2,tp=2");
  const std::string_view turned[] = {"tp", "pp"};
  const DeviceMesh slice = value_of(mesh.slice(turned, Coordinate{0, 1, 0}));
  CHECK(to_string(slice) == "tp=2,pp=2");
  CHECK(slice.rank_at({0, 0}) == 2);
  CHECK(slice.rank_at({0, 1}) == 6);
  CHECK(slice.rank_at({1, 0}) == 3);
  const DeviceMesh rest = value_of(mesh.submesh("dp", 1));
  CHECK(to_string(rest) == "pp=2,tp=2");
  CHECK(rest.rank_at({1, 0}) == 6);
}

TEST_CASE("flattened dims stay strided and can be split again") {
  const DeviceMesh mesh = mesh_of("pp=2,dp=3,tp=4");
  const std::int32_t apart[] = {2, 0};
  const DeviceMesh flat = value_of(mesh.flatten(apart, "x"));
  CHECK(to_string(flat) == "x=8,dp=3");
  CHECK(flat.is_strided());
  CHECK(flat.group(0, {0, 1}).ranks() == Ranks{4, 16, 5, 17, 6, 18, 7, 19});
  const MeshDim parts[] = {{"tp", 4}, {"pp", 2}};
  const DeviceMesh split = value_of(flat.unflatten(0, parts));
  const std::string_view order[] = {"pp", "dp", "tp"};
  CHECK(value_of(split.slice(order)) == mesh);
}

TEST_CASE("a dim flattened from neighbours splits into any sizes") {
  const std::int32_t both[] = {0, 1};
  const DeviceMesh world =
      value_of(mesh_of("dp=3,tp=4").flatten(both, "world"));
  const MeshDim parts[] = {{"a", 2}, {"b", 6}};
  const DeviceMesh split = value_of(world.unflatten(0, parts));
  CHECK(split == mesh_of("a=2,b=6"));
  CHECK(split.is_strided());
}

TEST_CASE("a split across the seams of a flattened dim keeps its ranks") {
  const DeviceMesh mesh = mesh_of("pp=3,dp=2,tp=4");
  const std::int32_t apart[] = {0, 2};
  const DeviceMesh flat = value_of(mesh.flatten(apart, "x"));
  const MeshDim parts[] = {{"a", 2}, {"b", 6}};
  const DeviceMesh split = value_of(flat.unflatten(0, parts));
  CHECK(to_string(split) == "a=2,b=6,dp=2");
  CHECK(split.group(1, {0, 0, 0}).ranks() == Ranks{0, 1, 2, 3, 8, 9});
  CHECK(split.group(1, {1, 0, 1}).ranks() == Ranks{14, 15, 20, 21, 22, 23});
}

TEST_CASE("lists of ranks that are strides are stored as strides") {
  const MeshDim dims[] = {{"a", 2}, {"b", 2}};
  const std::int64_t column[] = {0, 4, 1, 5};
  const DeviceMesh strided = value_of(DeviceMesh::from_ranks(dims, column));
  CHECK(strided.is_strided());
  CHECK(strided.rank_at({1, 1}) == 5);
  CHECK(strided.coordinate_of(4) == Coordinate{0, 1});

  const std::int64_t odd[] = {7, 3, 2, 9};
  const DeviceMesh listed = value_of(DeviceMesh::from_ranks(dims, odd));
  CHECK_FALSE(listed.is_strided());
  CHECK(listed.rank_at({1, 1}) == 9);
  CHECK(listed.coordinate_of(2) == Coordinate{1, 0});
  CHECK(listed.group(0, {0, 1}).ranks() == Ranks{3, 9});
  CHECK_FALSE(listed.contains(0));

  const std::int64_t backwards[] = {3, 2, 1, 0};
  const DeviceMesh down = value_of(DeviceMesh::from_ranks(dims, backwards));
  CHECK(down.rank_at({0, 1}) == 2);
  CHECK(down.coordinate_of(3) == Coordinate{0, 0});
}

TEST_CASE("strides that interleave are searched") {
  const MeshDim dims[] = {{"a", 3}, {"b", 2}};
  // a steps by 2 and b by 3: greedy division of 4 by 3 would miss it.
  const std::int64_t ranks[] = {0, 3, 2, 5, 4, 7};
  const DeviceMesh mesh = value_of(DeviceMesh::from_ranks(dims, ranks));
  CHECK(mesh.is_strided());
  CHECK(mesh.index_of(4) == 4);
  CHECK(mesh.index_of(7) == 5);
  CHECK_FALSE(mesh.contains(1));
  CHECK_FALSE(mesh.contains(6));
}

TEST_CASE(
    "equality is of names, sizes and ranks, whatever their form in memory") {
  const MeshDim dims[] = {{"dp", 2}, {"tp", 2}};
  const std::int64_t ranks[] = {0, 1, 2, 3};
  const DeviceMesh listed = value_of(DeviceMesh::from_ranks(dims, ranks));
  CHECK(listed == mesh_of("dp=2,tp=2"));
  CHECK(listed.hash() == mesh_of("dp=2,tp=2").hash());
  CHECK_FALSE(mesh_of("dp=2,tp=2") == mesh_of("dp=2,sp=2"));
  CHECK_FALSE(mesh_of("dp=2,tp=2") == mesh_of("dp=4,tp=1"));
  // Same names, sizes, first and last rank: only the order differs.
  const std::int64_t turned[] = {0, 2, 1, 3};
  const DeviceMesh other = value_of(DeviceMesh::from_ranks(dims, turned));
  CHECK_FALSE(other == listed);
  const std::unordered_set<DeviceMesh> set{listed, mesh_of("dp=2,tp=2"), other};
  CHECK(set.size() == 2);
}

// Returns the least time of several runs of a planner's typical mesh calls.
std::chrono::nanoseconds time_of_use(std::string_view text) {
  using Clock = std::chrono::steady_clock;
  auto least = std::chrono::nanoseconds::max();
  for (int run = 0; run < 7; ++run) {
    const auto began = Clock::now();
    for (int i = 0; i < 50; ++i) {
      const DeviceMesh mesh = mesh_of(text);
      const std::int32_t outer[] = {0, 1};
      const DeviceMesh flat = value_of(mesh.flatten(outer, "world"));
      REQUIRE(flat.is_strided());
      const RankGroup group = flat.group(0, {0, 1});
      const std::int64_t last = group.rank(group.size() - 1);
      REQUIRE(flat.index_of(last) == flat.size() - flat.size(1) + 1);
      REQUIRE(value_of(flat.submesh("world", 1)).size() == flat.size(1));
      REQUIRE(flat == value_of(mesh.flatten(outer, "world")));
    }
    least = std::min<std::chrono::nanoseconds>(least, Clock::now() - began);
  }
  return least;
}

TEST_CASE("100,000 ranks cost no more than eight") {
  // Were they listed anywhere, it would be thousands of times as much.
  CHECK(time_of_use("10,100,100") < 20 * time_of_use("2,2,2"));
}

}  // namespace
}  // namespace shardprop

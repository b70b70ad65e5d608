// Plans cost what an independent exhaustive search over the same layouts and
// moves finds.
#include "redistribute/redistribute_rows.h"
#include "redistribute/reference_search.h"
#include "support/property.h"
#include "support/result_checks.h"

#include <shardprop/redistribute/planner.h>

#include <random>

namespace shardprop {
namespace {

using testing::kNoPath;
using testing::ReferenceSearch;
using testing::value_of;

// Two devices a node: inner mesh dims run inside nodes, outer ones between.
Topology mixed_speeds(std::int64_t devices_per_node) {
  Topology topology = default_topology();
  topology.devices_per_node.value = static_cast<double>(devices_per_node);
  return topology;
}

std::vector<Placement> placements_of(int rank,
                                     std::vector<Placement> others = {}) {
  std::vector<Placement> all = std::move(others);
  all.push_back(Placement::replicate());
  for (int d = 0; d < rank; ++d) all.push_back(Placement::shard(d));
  return all;
}

bool shard_to_partial(const Layout& from, const Layout& to) {
  for (int i = 0; i < from.mesh_ndim(); ++i) {
    if (from[i].is_shard() && to[i].is_partial()) return true;
  }
  return false;
}

struct Case {
  DeviceMesh mesh;
  Topology topology;
  TensorMeta meta;
  std::vector<Placement> placements;
  SplitFactors split_factors = SplitFactors::kEndpoints;
  std::int64_t bucket_bytes = 0;
};

// Compares `pairs` pairs, or every pair if there are no more. The reference
// knows all of `placements`; the planner knows only the placements of its
// endpoints. The questions are equal only for pairs that contain all partials
// and strided shards.
int compare(const Case& c, int pairs, std::mt19937& random) {
  CAPTURE(to_string(c.mesh));
  CAPTURE(to_string(c.meta));
  const ReferenceSearch reference(c.mesh, c.topology, c.meta,
                                  testing::all_layouts(c.mesh, c.placements),
                                  c.bucket_bytes);
  const auto planner = value_of(RedistributePlanner::create(
      c.mesh, c.topology,
      {.split_factors = c.split_factors, .bucket_bytes = c.bucket_bytes}));
  const auto names_all = [&](const Layout& a, const Layout& b) {
    for (const Placement wanted : c.placements) {
      if (!wanted.is_partial() && !wanted.is_strided()) continue;
      bool named = false;
      for (int i = 0; i < c.mesh.ndim(); ++i) {
        named = named || a[i] == wanted || b[i] == wanted;
      }
      if (!named) return false;
    }
    return true;
  };
  const std::size_t n = reference.layouts().size();
  const auto total = static_cast<std::int64_t>(n * n);
  int compared = 0;
  for (std::int64_t k = 0; k < std::min<std::int64_t>(total, pairs); ++k) {
    const std::int64_t pick =
        total <= pairs ? k
                       : static_cast<std::int64_t>(
                             random() % static_cast<unsigned>(total));
    const auto a = static_cast<std::size_t>(pick) / n;
    const auto b = static_cast<std::size_t>(pick) % n;
    const Layout& from = reference.layouts()[a];
    const Layout& to = reference.layouts()[b];
    if (!names_all(from, to)) continue;
    ++compared;
    const auto cost = planner.cost(from, to, c.meta);
    if (shard_to_partial(from, to)) {
      CHECK_CODE(cost, ErrorCode::kShardToPartial);
      continue;
    }
    INFO(to_string(from) << " -> " << to_string(to));
    REQUIRE(cost.has_value());
    CHECK(*cost == reference.cost(a, b));
  }
  return compared;
}

TEST_CASE("every pair of plain layouts costs what exhaustive search finds") {
  std::mt19937 random(3);
  const bool full = testing::full_counts();
  const std::vector<const char*> tensors = {
      "f32[7]",         "bf16[48]",   "f32[5,3]",       "bf16[96,48]",
      "f64[4096,4096]", "f32[3,2,5]", "bf16[24,12,48]", "f32[512,256,1024]"};
  int compared = 0;
  for (const DeviceMesh& mesh : testing::meshes_up_to(3, 4)) {
    for (const char* text : tensors) {
      if (!full && random() % 8 != 0) continue;
      const auto meta = value_of(TensorMeta::parse(text));
      compared +=
          compare({.mesh = mesh,
                   .topology = mixed_speeds(full ? 2 : 1 + random() % 4),
                   .meta = meta,
                   .placements = placements_of(meta.rank())},
                  full ? 1 << 20 : 400, random);
    }
  }
  MESSAGE(compared << " pairs of plain layouts");
  CHECK(compared > 10000);
}

TEST_CASE("pairs of small tensors in buckets cost what the search finds") {
  std::mt19937 random(5);
  int compared = 0;
  for (const DeviceMesh& mesh : testing::meshes_up_to(3, 4)) {
    if (!testing::full_counts() && random() % 4 != 0) continue;
    for (const char* text : {"f32[7]", "bf16[96,48]", "f32[512,256,1024]"}) {
      const auto meta = value_of(TensorMeta::parse(text));
      compared +=
          compare({.mesh = mesh,
                   .topology = mixed_speeds(1 + random() % 4),
                   .meta = meta,
                   .placements = placements_of(
                       meta.rank(), {Placement::partial(ReduceOp::kSum)}),
                   .bucket_bytes = std::int64_t{1} << (4 * (random() % 7))},
                  200, random);
    }
  }
  CHECK(compared > 300);
}

TEST_CASE("pairs with partials cost what exhaustive search finds") {
  std::mt19937 random(4);
  const bool full = testing::full_counts();
  const std::vector<std::vector<Placement>> partials = {
      {Placement::partial(ReduceOp::kSum)},
      {Placement::partial(ReduceOp::kMax)},
      {Placement::partial(ReduceOp::kSum), Placement::partial(ReduceOp::kAvg)},
      {Placement::partial(ReduceOp::kSum, DType::kF32)}};
  int compared = 0;
  std::size_t turn = 0;
  for (const DeviceMesh& mesh : testing::meshes_up_to(3, 4)) {
    for (const char* text :
         {"bf16[7]", "bf16[5,6]", "bf16[512,4096]", "bf16[12,8,4]"}) {
      if (!full && random() % 10 != 0) continue;
      const auto meta = value_of(TensorMeta::parse(text));
      compared +=
          compare({.mesh = mesh,
                   .topology = mixed_speeds(1 + random() % 4),
                   .meta = meta,
                   .placements = placements_of(
                       meta.rank(), partials[turn++ % partials.size()])},
                  full ? 1 << 20 : 600, random);
    }
  }
  MESSAGE(compared << " pairs with partials");
  CHECK(compared > 2000);
}

TEST_CASE("a reduction that the engine lacks is an exchange in every search") {
  std::mt19937 random(5);
  Topology mpi = value_of(find_topology("cpu-host"));
  mpi.devices_per_node.value = 2;
  const auto mesh = value_of(DeviceMesh::parse("2,3"));
  for (const Topology& topology : {mpi, mixed_speeds(2)}) {
    for (const auto& [text, op] :
         {std::pair{"i16[12,8]", ReduceOp::kSum},
          std::pair{"i32[12,8]", ReduceOp::kBxor},
          std::pair{"bf16[512,4096]", ReduceOp::kSum}}) {
      const auto meta = value_of(TensorMeta::parse(text));
      CHECK(compare({.mesh = mesh,
                     .topology = topology,
                     .meta = meta,
                     .placements = placements_of(2, {Placement::partial(op)})},
                    1 << 20, random) > 100);
    }
  }
}

TEST_CASE("pairs with strided shards cost what exhaustive search finds") {
  std::mt19937 random(6);
  const bool full = testing::full_counts();
  int compared = 0;
  for (const DeviceMesh& mesh : testing::meshes_up_to(full ? 3 : 2, 4)) {
    for (const char* text : {"f32[24]", "f32[12,5]", "bf16[1536,64]"}) {
      if (!full && random() % 4 != 0) continue;
      const auto meta = value_of(TensorMeta::parse(text));
      const auto factor = 2 + static_cast<int>(random() % 3);
      compared +=
          compare({.mesh = mesh,
                   .topology = mixed_speeds(1 + random() % 4),
                   .meta = meta,
                   .placements = placements_of(
                       meta.rank(), {Placement::strided_shard(0, factor)})},
                  full ? 1 << 20 : 600, random);
    }
  }
  MESSAGE(compared << " pairs with strided shards");
  CHECK(compared > 500);
}

TEST_CASE("a mesh's own split factors only ever make plans cheaper") {
  std::mt19937 random(7);
  const auto mesh = value_of(DeviceMesh::parse("2,4"));
  const auto meta = value_of(TensorMeta::parse("bf16[64,48]"));
  const Topology topology = mixed_speeds(4);
  std::vector<Placement> placements = placements_of(2);
  for (int d = 0; d < 2; ++d) {
    for (const int factor : {2, 4}) {
      placements.push_back(Placement::strided_shard(d, factor));
    }
  }
  const ReferenceSearch reference(mesh, topology, meta,
                                  testing::all_layouts(mesh, placements));
  const auto all = value_of(RedistributePlanner::create(
      mesh, topology, {.split_factors = SplitFactors::kAll}));
  const auto plain = value_of(RedistributePlanner::create(
      mesh, topology, {.split_factors = SplitFactors::kEndpoints}));
  int cheaper = 0;
  for (std::size_t a = 0; a < reference.layouts().size(); ++a) {
    for (std::size_t b = 0; b < reference.layouts().size(); ++b) {
      const Layout& from = reference.layouts()[a];
      const Layout& to = reference.layouts()[b];
      const std::int64_t cost = value_of(all.cost(from, to, meta));
      CHECK(cost == reference.cost(a, b));
      const std::int64_t without = value_of(plain.cost(from, to, meta));
      CHECK(cost <= without);
      if (cost < without) ++cheaper;
    }
  }
  MESSAGE(cheaper << " of "
                  << reference.layouts().size() * reference.layouts().size()
                  << " pairs gain from the mesh's split factors");
  CHECK(cheaper > 0);
}

TEST_CASE("the rows of all layouts are the exhaustive search's") {
  for (const char* text : {"2,4", "3,1,2", "2,2,3"}) {
    const auto mesh = value_of(DeviceMesh::parse(text));
    const auto meta = value_of(TensorMeta::parse("bf16[512,7,64]"));
    const Topology topology = mixed_speeds(4);
    const auto planner = value_of(RedistributePlanner::create(mesh, topology));
    const auto rows = value_of(RedistributeRows::create(planner, meta));
    const ReferenceSearch reference(
        mesh, topology, meta,
        testing::all_layouts(
            mesh, placements_of(3, {Placement::partial(ReduceOp::kSum)})));
    REQUIRE(rows.layouts().size() == reference.layouts().size());
    for (std::size_t a = 0; a < reference.layouts().size(); ++a) {
      const Layout& from = reference.layouts()[a];
      const auto i = rows.index_of(from);
      REQUIRE(i.has_value());
      const std::vector<std::int64_t> costs = rows.costs_from(*i);
      for (std::size_t b = 0; b < reference.layouts().size(); ++b) {
        const Layout& to = reference.layouts()[b];
        const auto j = rows.index_of(to);
        REQUIRE(j.has_value());
        CHECK(costs[*j] == (shard_to_partial(from, to)
                                ? RedistributeRows::kImpossible
                                : reference.cost(a, b)));
      }
    }
  }
}

}  // namespace
}  // namespace shardprop

// Plans that run on simulated ranks give exactly the wanted shards, and send
// the bytes that they predict.
#include "redistribute/reference_search.h"
#include "redistribute/simulated_ranks.h"

#include "support/property.h"
#include "support/result_checks.h"

#include <shardprop/placement/tensor_spec.h>
#include <shardprop/redistribute/collective_cost.h>
#include <shardprop/redistribute/planner.h>

#include <map>
#include <random>
#include <tuple>
#include <utility>

namespace shardprop {
namespace {

using testing::SimulatedRanks;
using testing::value_of;

struct Space {
  const char* mesh;
  const char* tensor;
  std::vector<Placement> placements;
};

std::vector<Placement> with_shards(int rank, std::vector<Placement> others) {
  others.push_back(Placement::replicate());
  for (int d = 0; d < rank; ++d) others.push_back(Placement::shard(d));
  return others;
}

bool possible(const Layout& from, const Layout& to) {
  for (int i = 0; i < from.mesh_ndim(); ++i) {
    if (from[i].is_shard() && to[i].is_partial()) return false;
  }
  return true;
}

void simulate(const RedistributePlanner& planner, const Layout& from,
              const Layout& to, const TensorMeta& meta, std::mt19937& random,
              std::map<CollectiveKind, int>& kinds) {
  INFO(to_string(planner.mesh()) << " " << to_string(meta) << " "
                                 << to_string(from) << " -> " << to_string(to));
  const auto plan = value_of(planner.plan(from, to, meta));
  SimulatedRanks ranks(planner.mesh(), meta, from, random);
  REQUIRE(ranks.holds(from));
  std::int64_t nanoseconds = 0;
  std::int64_t bytes = 0;
  const Layout* at = &from;
  for (const RedistributeStep& step : plan.steps) {
    REQUIRE(step.src == *at);
    at = &step.dst;
    ++kinds[step.kind];
    ranks.run(step);
    // No rank sends more than its step says; where nothing is padded the
    // busiest sends just that.
    const bool moves = step.kind == CollectiveKind::kPermute ||
                       step.kind == CollectiveKind::kAllToAll;
    if (moves) {
      const std::int64_t sent = ranks.last_sent() * item_size(meta.dtype());
      CHECK(sent <= step.bytes_per_rank);
      if (is_even(step.src, planner.mesh(), meta.shape()) &&
          is_even(step.dst, planner.mesh(), meta.shape())) {
        CHECK(sent == step.bytes_per_rank);
      }
    }
    nanoseconds += step.nanoseconds;
    bytes += step.bytes_per_rank;
  }
  CHECK(*at == to);
  CHECK(ranks.holds(to));
  CHECK(nanoseconds == plan.nanoseconds);
  CHECK(bytes == plan.bytes_per_rank);
}

// Reported against PyTorch's DTensor (by number), and right here.
struct Reported {
  const char* number;
  const char* mesh;
  const char* tensor;
  const char* from;
  const char* to;
};

TEST_CASE("redistributions that were reported as wrong elsewhere") {
  const std::vector<Reported> reports = {
      // Uneven shards gathered, the last rank's empty.
      {"144109", "4", "f32[5,3]", "S(0)", "R"},
      {"144109", "4", "f32[9]", "S(0)", "R"},
      // These strided shards of uneven dims have no gaps.
      {"168134", "2,2", "f32[7]", "SS(0,2),S(0)", "R,R"},
      {"168134", "2,3", "f32[11,2]", "SS(0,3),S(0)", "R,S(1)"},
      {"168134", "3,2", "f32[11]", "S(0),SS(0,4)", "S(0),R"},
      // Both mesh dims gathered at once, in the order in which they cut.
      {"194457", "2,2", "f32[8,3]", "S(0),S(0)", "R,R"},
      {"194457", "2,3", "f32[7,2]", "S(0),S(0)", "R,R"},
      {"194457", "2,2", "f32[8,3]", "SS(0,2),S(0)", "R,R"},
      {"194457", "2,2,2", "f32[13]", "S(0),S(0),S(0)", "R,R,R"},
  };
  std::mt19937 random(7);
  std::map<CollectiveKind, int> kinds;
  for (const Reported& report : reports) {
    INFO(report.number);
    const auto mesh = value_of(DeviceMesh::parse(report.mesh));
    const auto planner = value_of(RedistributePlanner::create(
        mesh, default_topology(), {.split_factors = SplitFactors::kAll}));
    const auto meta = value_of(TensorMeta::parse(report.tensor));
    const auto layout = [&](const char* text) {
      return canonical(value_of(Layout::parse(text)), mesh, meta.shape());
    };
    simulate(planner, layout(report.from), layout(report.to), meta, random,
             kinds);
  }
}

TEST_CASE("plans give every rank exactly the wanted shard") {
  const std::vector<Space> spaces = {
      {"4", "f32[7]", with_shards(1, {Placement::partial(ReduceOp::kSum)})},
      {"2,2", "f32[5,3]", with_shards(2, {Placement::partial(ReduceOp::kSum)})},
      {"3,2", "f32[7,4]", with_shards(2, {Placement::partial(ReduceOp::kMax)})},
      {"2,3", "f32[12,6]",
       with_shards(2, {Placement::partial(ReduceOp::kSum),
                       Placement::partial(ReduceOp::kAvg)})},
      {"3,3", "i32[9,9]",
       with_shards(2, {Placement::partial(ReduceOp::kBxor)})},
      {"2,2", "i32[3,5]",
       with_shards(2,
                   {
                       Placement::partial(ReduceOp::kBand),
                   })},
      {"2,4", "i32[6,4]", with_shards(2, {Placement::partial(ReduceOp::kBor)})},
      {"4,2", "f64[8,4]",
       with_shards(2, {Placement::partial(ReduceOp::kProduct)})},
      {"2,3", "f64[5,8]", with_shards(2, {Placement::partial(ReduceOp::kMin)})},
      {"2,4", "f32[24,8]",
       with_shards(2, {Placement::strided_shard(0, 3),
                       Placement::strided_shard(0, 2)})},
      {"3,2", "f32[11]", with_shards(1, {Placement::strided_shard(0, 2)})},
      {"2,1,3", "f32[4,5]", with_shards(2, {})},
      {"2,2,2", "f32[8,4,2]", with_shards(3, {})},
      {"2,3,2", "f32[5,3,4]",
       with_shards(3, {Placement::partial(ReduceOp::kSum)})},
      {"4,2,3", "bf16[7,12,5]", with_shards(3, {})},
      {"2,2,2,2", "f32[6,5]", with_shards(2, {})},
  };
  std::mt19937 random(11);
  std::map<CollectiveKind, int> kinds;
  int plans = 0;
  const int pairs = testing::full_counts() ? 20000 : 220;
  for (const Space& space : spaces) {
    const auto mesh = value_of(DeviceMesh::parse(space.mesh));
    const auto meta = value_of(TensorMeta::parse(space.tensor));
    Topology topology = default_topology();
    topology.devices_per_node.value = 2;
    const auto planner = value_of(RedistributePlanner::create(
        mesh, topology, {.split_factors = SplitFactors::kEndpoints}));
    std::vector<Layout> layouts;
    for (Layout& layout : testing::all_layouts(mesh, space.placements)) {
      if (canonical(layout, mesh, meta.shape()) == layout) {
        layouts.push_back(std::move(layout));
      }
    }
    for (int k = 0; k < pairs; ++k) {
      const Layout& from = layouts[random() % layouts.size()];
      const Layout& to = layouts[random() % layouts.size()];
      if (!possible(from, to)) continue;
      simulate(planner, from, to, meta, random, kinds);
      ++plans;
    }
  }
  MESSAGE(plans << " plans simulated");
  for (const CollectiveKind kind :
       {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
        CollectiveKind::kAllReduce, CollectiveKind::kAllToAll,
        CollectiveKind::kSlice, CollectiveKind::kPermute}) {
    CAPTURE(to_string(kind));
    CHECK(kinds[kind] > 0);
  }
}

// Runs a step once on ranks that hold its source, and records that it left
// every rank with just its shard. Plans share their steps, so the test can
// check every plan of every pair.
class StepProof {
 public:
  StepProof(DeviceMesh mesh, TensorMeta meta)
      : mesh_(std::move(mesh)), meta_(std::move(meta)) {}

  // Whether the step turns its source into its target.
  bool proves(const RedistributeStep& step, std::mt19937& random) {
    const auto [at, is_new] = right_.emplace(
        std::tuple(step.src, step.dst, step.kind, step.mesh_dims), false);
    if (!is_new) return at->second;
    SimulatedRanks ranks(mesh_, meta_, step.src, random);
    ranks.run(step);
    at->second = ranks.holds(step.dst);
    return at->second;
  }
  std::size_t steps() const { return right_.size(); }

 private:
  DeviceMesh mesh_;
  TensorMeta meta_;
  std::map<std::tuple<Layout, Layout, CollectiveKind,
                      decltype(RedistributeStep::mesh_dims)>,
           bool>
      right_;
};

TEST_CASE("every step of every pair's plan leaves each rank its shard") {
  std::mt19937 random(13);
  const bool full = testing::full_counts();
  std::int64_t plans = 0;
  std::size_t steps = 0;
  const std::vector<std::vector<Placement>> others = {
      {},
      {Placement::partial(ReduceOp::kSum)},
      {Placement::partial(ReduceOp::kMax)},
      {Placement::partial(ReduceOp::kSum), Placement::partial(ReduceOp::kAvg)},
      {Placement::strided_shard(0, 2)}};
  // On three mesh dims strided shards take milliseconds a plan.
  for (const DeviceMesh& mesh : testing::meshes_up_to(3, 4)) {
    for (const char* text : {"f64[7]", "f64[8]", "f64[5,3]", "f64[12,8]",
                             "f64[3,2,5]", "f64[4,6,2]"}) {
      if (!full && random() % 6 != 0) continue;
      const auto meta = value_of(TensorMeta::parse(text));
      CAPTURE(to_string(mesh));
      CAPTURE(to_string(meta));
      Topology topology = default_topology();
      topology.devices_per_node.value = 2;
      const auto planner = value_of(RedistributePlanner::create(
          mesh, topology, {.split_factors = SplitFactors::kEndpoints}));
      StepProof proof(mesh, meta);
      std::vector<Layout> layouts;
      const auto placements = with_shards(
          meta.rank(), others[random() % (mesh.ndim() > 2 ? 4 : 5)]);
      for (Layout& layout : testing::all_layouts(mesh, placements)) {
        if (canonical(layout, mesh, meta.shape()) == layout) {
          layouts.push_back(std::move(layout));
        }
      }
      for (const Layout& from : layouts) {
        for (const Layout& to : layouts) {
          if (!full && random() % 32 != 0) continue;
          if (!possible(from, to)) continue;
          INFO(to_string(from) << " -> " << to_string(to));
          const auto plan = value_of(planner.plan(from, to, meta));
          const Layout* at = &from;
          bool right = true;
          for (const RedistributeStep& step : plan.steps) {
            right = right && step.src == *at && proof.proves(step, random);
            at = &step.dst;
          }
          CHECK((right && *at == to));
          ++plans;
        }
      }
      steps += proof.steps();
    }
  }
  MESSAGE(plans << " plans, of " << steps << " different steps, each run");
  CHECK(plans > 1000);
}

TEST_CASE("without partials no plan beats the bytes a rank lacks") {
  std::mt19937 random(12);
  std::map<int, int> histogram;  // tenths of received over lacked
  int at_bound = 0;
  int counted = 0;
  const int wanted_pairs = testing::full_counts() ? 10000 : 1000;
  while (counted < wanted_pairs) {
    const int ndim = 1 + static_cast<int>(random() % 3);
    std::vector<MeshDim> dims;
    for (int i = 0; i < ndim; ++i) {
      dims.push_back({"d" + std::to_string(i),
                      static_cast<std::int64_t>(2 + random() % 3)});
    }
    const auto mesh = value_of(DeviceMesh::create(dims));
    const int rank = 1 + static_cast<int>(random() % 3);
    Dims shape;
    for (int d = 0; d < rank; ++d) {
      shape.push_back(static_cast<std::int64_t>(1 + random() % 9));
    }
    const auto meta = value_of(TensorMeta::contiguous(shape, DType::kF32));
    const auto draw = [&] {
      Placements placements;
      for (int i = 0; i < ndim; ++i) {
        const auto pick = static_cast<int>(random() % (rank + 1U));
        placements.push_back(pick == rank ? Placement::replicate()
                                          : Placement::shard(pick));
      }
      return value_of(Layout::create(placements));
    };
    const Layout from = draw();
    const Layout to = draw();
    const auto planner =
        value_of(RedistributePlanner::create(mesh, default_topology()));
    const auto plan = value_of(planner.plan(from, to, meta));
    ++counted;

    // The bound counts the elements that a rank needs and lacks.
    std::int64_t bound = 0;
    std::vector<std::int64_t> lacked;
    for (std::int64_t r = 0; r < mesh.size(); ++r) {
      const Coordinate at = mesh.coordinate_at_index(r);
      const LocalRegion held = local_region(from, mesh, shape, at);
      const LocalRegion wanted = local_region(to, mesh, shape, at);
      std::int64_t kept = 1;
      for (std::size_t d = 0; d < shape.size(); ++d) {
        std::int64_t common = 0;
        for (const Interval& a : held.dims()[d]) {
          for (const Interval& b : wanted.dims()[d]) {
            common += std::max<std::int64_t>(
                0, std::min(a.end, b.end) - std::max(a.begin, b.begin));
          }
        }
        kept *= common;
      }
      lacked.push_back(wanted.numel() - kept);
      bound = std::max(bound, lacked.back());
    }
    SimulatedRanks ranks(mesh, meta, from, random);
    for (const RedistributeStep& step : plan.steps) ranks.run(step);
    std::int64_t busiest = 0;
    for (std::size_t r = 0; r < lacked.size(); ++r) {
      CHECK(ranks.received()[r] >= lacked[r]);
      busiest = std::max(busiest, ranks.received()[r]);
    }
    CHECK(busiest >= bound);
    if (busiest == bound) ++at_bound;
    if (bound == 0) continue;
    ++histogram[static_cast<int>(10 * busiest / bound)];
  }
  std::string text;
  int above = 0;
  for (const auto& [tenths, count] : histogram) {
    if (tenths > 20) {
      above += count;
      continue;
    }
    text += "\n  " + std::to_string(tenths / 10) + "." +
            std::to_string(tenths % 10) + ": " + std::to_string(count);
  }
  MESSAGE(at_bound << " of " << counted
                   << " plans receive the bound; received over bound:" << text
                   << "\n  above 2.0: " << above);
  CHECK(at_bound > counted / 4);
}

}  // namespace
}  // namespace shardprop

// PathBound never exceeds the cost of a path that an exhaustive search finds.
#include "redistribute/path_bound.h"

#include "redistribute/reference_search.h"
#include "support/property.h"
#include "support/result_checks.h"

#include <shardprop/redistribute/planner.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace shardprop {
namespace {

using redistribute::ActiveDims;
using redistribute::Alphabet;
using redistribute::GroupTimes;
using redistribute::Label;
using redistribute::PathBound;
using redistribute::SearchProblem;
using testing::ReferenceSearch;
using testing::value_of;

Topology small_nodes(std::string_view name, double devices_per_node) {
  Topology topology = value_of(find_topology(name));
  topology.devices_per_node.value = devices_per_node;
  return topology;
}

// The labels of the cheapest paths between all layouts: nanoseconds, then
// steps.
std::vector<Label> least_labels(const ReferenceSearch& reference) {
  const std::size_t n = reference.layouts().size();
  std::vector<Label> labels(n * n, redistribute::kUnreached);
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = 0; b < n; ++b) {
      const std::int64_t move =
          reference.one_move(reference.layouts()[a], reference.layouts()[b]);
      if (move != testing::kNoPath) {
        labels[a * n + b] = redistribute::label_of(move, 1);
      }
    }
    labels[a * n + a] = 0;
  }
  for (std::size_t via = 0; via < n; ++via) {
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < n; ++b) {
        labels[a * n + b] = std::min(labels[a * n + b],
                                     labels[a * n + via] + labels[via * n + b]);
      }
    }
  }
  return labels;
}

struct Compared {
  int pairs = 0;       // pairs that a path connects at some cost
  int bounded = 0;     // of these, pairs with a bound above 0
  int half_tight = 0;  // of these, pairs with a bound of half the cost or more
};

// Compares the bound of every pair of layouts with the cheapest path.
void compare(std::string_view mesh_text, std::string_view tensor,
             const Topology& topology, const std::vector<Placement>& placements,
             std::int64_t bucket_bytes, Compared& out) {
  const DeviceMesh mesh = value_of(DeviceMesh::parse(mesh_text));
  const TensorMeta meta = value_of(TensorMeta::parse(tensor));
  CAPTURE(mesh_text);
  CAPTURE(tensor);
  const ReferenceSearch reference(mesh, topology, meta,
                                  testing::all_layouts(mesh, placements),
                                  bucket_bytes);
  const std::vector<Layout>& layouts = reference.layouts();
  const ActiveDims active(mesh);
  const Alphabet alphabet = value_of(
      Alphabet::create(active, meta, layouts, SplitFactors::kEndpoints));
  const GroupTimes times(topology, mesh, active, bucket_bytes);
  const SearchProblem problem{active, alphabet, times, mesh, meta, {}, nullptr};
  const std::vector<Label> labels = least_labels(reference);
  for (std::size_t b = 0; b < layouts.size(); ++b) {
    const auto target = to_state(layouts[b], active, alphabet).value();
    const PathBound bound(problem, target);
    CHECK(bound(target) == 0);
    for (std::size_t a = 0; a < layouts.size(); ++a) {
      const Label least = labels[a * layouts.size() + b];
      if (least >= redistribute::kUnreached) continue;
      INFO(to_string(layouts[a]) << " -> " << to_string(layouts[b]));
      REQUIRE(redistribute::nanoseconds_of(least) == reference.cost(a, b));
      const auto source = to_state(layouts[a], active, alphabet).value();
      const Label found = bound(source);
      CHECK(found <= least);
      CHECK(bound.latencies(source) <= found);
      if (redistribute::nanoseconds_of(least) == 0) continue;
      ++out.pairs;
      out.bounded += found > 0 ? 1 : 0;
      out.half_tight += 2 * found >= least ? 1 : 0;
    }
  }
}

const Placement kSummed = Placement::partial(ReduceOp::kSum);

TEST_CASE("no path costs less than its PathBound") {
  Compared out;
  const auto r = Placement::replicate();
  const auto rows = Placement::shard(0);
  const auto columns = Placement::shard(1);
  for (const double devices_per_node : {2.0, 3.0, 8.0}) {
    for (const std::string_view name : {"dgx-h100", "cpu-host"}) {
      const Topology topology = small_nodes(name, devices_per_node);
      for (const std::string_view mesh : {"4", "2,3", "2,1,4", "2,2,2"}) {
        const bool large = mesh == "2,2,2" && !testing::full_counts();
        for (const std::string_view tensor :
             {"bf16[5,7]", "f32[8,16]", "f32[3,4096]", "bf16[4096,4096]"}) {
          if (large && tensor != "f32[3,4096]") continue;
          compare(mesh, tensor, topology, {r, rows, columns}, 0, out);
          if (large) continue;
          compare(mesh, tensor, topology, {r, rows, columns, kSummed}, 0, out);
        }
      }
    }
  }
  MESSAGE(out.pairs << " pairs, bounded " << out.bounded << ", half tight "
                    << out.half_tight);
  CHECK(out.pairs > 5'000);
  CHECK(out.bounded > out.pairs * 9 / 10);
  CHECK(out.half_tight > out.pairs / 3);
}

TEST_CASE("no path of a tensor in a bucket costs less than its PathBound") {
  Compared out;
  const Topology topology = small_nodes("dgx-h100", 2);
  for (const std::int64_t bucket_bytes :
       {std::int64_t{1} << 12, std::int64_t{1} << 24}) {
    for (const std::string_view tensor : {"bf16[5,7]", "f32[512,64]"}) {
      compare("2,4", tensor, topology,
              {Placement::replicate(), Placement::shard(0), Placement::shard(1),
               kSummed},
              bucket_bytes, out);
    }
  }
  CHECK(out.pairs > 300);
}

TEST_CASE("a tensor without elements has a PathBound of 0") {
  Compared out;
  compare("2,2", "f32[0,8]", default_topology(),
          {Placement::replicate(), Placement::shard(0), kSummed}, 0, out);
  CHECK(out.pairs == 0);
}

TEST_CASE("a cut after a cut that must change is unsettled too") {
  const DeviceMesh mesh = value_of(DeviceMesh::parse("2,2,2"));
  const TensorMeta meta = value_of(TensorMeta::parse("f32[64,64]"));
  const ActiveDims active(mesh);
  const Layout summed = value_of(Layout::parse("P(sum),P(sum),P(sum)"));
  const Alphabet alphabet = value_of(
      Alphabet::create(active, meta, {&summed, 1}, SplitFactors::kEndpoints));
  const GroupTimes times(default_topology(), mesh, active, 0);
  const SearchProblem problem{active, alphabet, times, mesh, meta, {}, nullptr};
  const auto state = [&](std::string_view text) {
    return to_state(value_of(Layout::parse(text)), active, alphabet).value();
  };
  const PathBound to_columns(problem, state("S(1),S(0),R"));
  // Mesh dim 0 leaves tensor dim 0, so the later cut of mesh dim 1 moves too.
  CHECK(to_columns.unsettled(state("S(0),S(0),R")) == 0b011);
  CHECK(to_columns.unsettled(state("S(1),S(0),S(0)")) == 0b100);
  CHECK(to_columns.unsettled(state("S(1),R,P(sum)")) == 0b100);
  CHECK(to_columns.unsettled(state("R,R,R")) == 0);
  CHECK(to_columns.unsettled(state("S(1),S(0),R")) == 0);
  CHECK(to_columns.covering(0) == 0);
  CHECK(to_columns.covering(0b001) <= to_columns.covering(0b011));
}

}  // namespace
}  // namespace shardprop

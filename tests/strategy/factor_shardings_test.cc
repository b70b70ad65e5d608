// Strategies with factor shardings of all orders and strides.
#include <shardprop/strategy/factor_sharding.h>

#include "strategy/applied.h"
#include "strategy/carried_factors.h"

#include <shardprop/placement/local_region.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace shardprop {
namespace {

using testing::applied;
using testing::library;
using testing::Strategies;
using testing::value_of;

// Returns all shardings of a factor over some mesh dims: every order, with and
// without strides.
std::vector<OfferedSharding> every_sharding(const DeviceMesh& mesh) {
  std::vector<OfferedSharding> out;
  const auto add = [&](const std::vector<std::int32_t>& cuts) {
    // The digits of `code` choose the split factor of each cut.
    constexpr std::array<int, 3> kSplits = {1, 2, 3};
    int codes = 1;
    for (std::size_t i = 0; i < cuts.size(); ++i) codes *= 3;
    for (int code = 0; code < codes; ++code) {
      Placements placements(static_cast<std::size_t>(mesh.ndim()));
      ShardOrder order(static_cast<std::size_t>(mesh.ndim()));
      int rest = code;
      for (std::size_t i = 0; i < cuts.size(); ++i, rest /= 3) {
        const auto m = static_cast<std::size_t>(cuts[i]);
        placements[m] = Placement::strided_shard(0, kSplits[rest % 3]);
        order[m] = static_cast<std::int8_t>(i);
      }
      out.push_back(
          {value_of(FactorSharding::create(placements, order)), std::nullopt});
    }
  };
  for (std::uint32_t mask = 1; mask < 1U << mesh.ndim(); ++mask) {
    std::vector<std::int32_t> cuts;
    for (std::int32_t m = 0; m < mesh.ndim(); ++m) {
      if ((mask >> m & 1U) != 0) cuts.push_back(m);
    }
    do {
      add(cuts);
    } while (std::next_permutation(cuts.begin(), cuts.end()));
  }
  return out;
}

std::vector<std::int64_t> elements_of(const Intervals& held) {
  std::vector<std::int64_t> out;
  for (const Interval& run : held) {
    for (std::int64_t at = run.begin; at < run.end; ++at) out.push_back(at);
  }
  return out;
}

// Returns the elements of a dim whose position in each factor the rank holds.
std::vector<std::int64_t> elements_by_factors(const LocalContext& context,
                                              const DimFactors& factors,
                                              const Coordinate& at) {
  std::vector<std::int64_t> out = {0};
  for (const FactorId factor : factors) {
    const std::int64_t size = context.space.factor(factor).size;
    Placements in_order(static_cast<std::size_t>(context.mesh.ndim()));
    for (const std::int32_t m : context.mesh_dims(factor)) {
      in_order[static_cast<std::size_t>(m)] = Placement::shard(0);
    }
    const FactorSharding sharding =
        context.shardings() != nullptr
            ? FactorShardings(*context.shardings()).of(factor)
            : value_of(FactorSharding::create(in_order));
    std::vector<std::int64_t> longer;
    for (const std::int64_t major : out) {
      for (const std::int64_t minor :
           elements_of(local_intervals(sharding, context.mesh, 0, size, at))) {
        longer.push_back(major * size + minor);
      }
    }
    out = std::move(longer);
  }
  return out;
}

// Returns whether all ranks hold the same elements, in the same order, by the
// layout of the operand and by the shardings of its factors.
bool is_exact(const LocalContext& context, const Operand& operand,
              const TensorMeta& meta, const Layout& layout) {
  for (std::int64_t rank = 0; rank < context.mesh.size(); ++rank) {
    const Coordinate at = context.mesh.coordinate_at_index(rank);
    for (std::size_t d = 0; d < operand.dims.size(); ++d) {
      const auto dim = static_cast<int>(d);
      if (context.space.size(operand.dims[d]) != meta.size(dim)) continue;
      if (elements_of(
              local_intervals(layout, context.mesh, dim, meta.size(dim), at)) !=
          elements_by_factors(context, operand.dims[d], at)) {
        return false;
      }
    }
  }
  return true;
}

struct Counts {
  int strategies = 0;
  int unusual = 0;  // with a sharding that is not in mesh order
};

void check_all(const OpSchema& op, std::string_view mesh, Counts& counts) {
  StrategyOptions options;
  options.shardings = every_sharding(value_of(DeviceMesh::parse(mesh)));
  const Strategies strategies(op, mesh, options);
  for (const PlacementStrategy& strategy : strategies.all().strategies) {
    const LocalContext context = strategies.context(strategy);
    ++counts.strategies;
    counts.unusual += strategy.shardings.valid() ? 1 : 0;
    CAPTURE(to_string(strategy, strategies.layouts()));
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      CHECK(is_exact(context, context.space.inputs[i], op.inputs[i],
                     context.input(static_cast<int>(i))));
    }
    for (std::size_t o = 0; o < op.outputs.size(); ++o) {
      CHECK(is_exact(context, context.space.outputs[o], op.outputs[o],
                     context.output(static_cast<int>(o))));
    }
  }
}

TEST_CASE("operands with a factor are owned by the ranks that own its parts") {
  using List = std::vector<std::int64_t>;
  const std::vector<OpSchema> calls = {
      applied("aten.relu.default", {"f32[12,7]"}),
      applied("aten.mm.default", {"f32[12,8]", "f32[8,5]"}),
      applied("aten.sum.dim_IntList", {"f32[12,6]"}, {{"dim", List{0}}}),
      applied("aten._softmax.default", {"f32[6,12]"},
              {{"dim", std::int64_t{1}}, {"half_to_float", false}}),
      applied("aten.view.default", {"f32[4,6,2]"}, {{"size", List{24, 2}}}),
      applied("aten.view.default", {"f32[3,5]"}, {{"size", List{15}}}),
      applied("aten.view.default", {"f32[24]"}, {{"size", List{2, 3, 4}}}),
      applied("aten.view.default", {"f32[6,4]"}, {{"size", List{4, 6}}}),
  };
  Counts counts;
  for (const OpSchema& op : calls) {
    for (const std::string_view mesh : {"2", "3", "2,2", "2,3", "2,1,2"}) {
      CAPTURE(op.name());
      CAPTURE(mesh);
      check_all(op, mesh, counts);
    }
  }
  check_all(calls[0], "2,2,2", counts);
  check_all(calls[4], "2,2,2", counts);
  MESSAGE(counts.unusual << " of " << counts.strategies << " strategies");
  CHECK(counts.unusual > 2000);
}

TEST_CASE("shardings that are not offered are not listed") {
  const OpSchema op = applied("aten.mm.default", {"f32[12,8]", "f32[8,4]"});
  StrategyOptions options;
  options.shardings = {{value_of(FactorSharding::parse("S(0)@1,S(0)@0")), {}}};
  const Strategies all(op, "2,2", options);
  CHECK(all.has("[S(0)@1,S(0)@0],[R,R]->[S(0)@1,S(0)@0]"));
  CHECK(all.has("[S(1)@1,S(1)@0],[S(0)@1,S(0)@0]->[P(sum),P(sum)]"));
  options.shardings[0].factor = 0;
  const Strategies rows(op, "2,2", options);
  CHECK(rows.has("[S(0)@1,S(0)@0],[R,R]->[S(0)@1,S(0)@0]"));
  CHECK_FALSE(rows.has("[S(1)@1,S(1)@0],[S(0)@1,S(0)@0]->[P(sum),P(sum)]"));
  const Strategies plain(op, "2,2");
  CHECK(plain.all().strategies.size() + 1 == rows.all().strategies.size());
}

TEST_CASE("a dim is sharded by the parts of its factors") {
  const OpSchema op = applied("aten.view.default", {"f32[4,6]"},
                              {{"size", std::vector<std::int64_t>{24}}});
  StrategyOptions options;
  options.shardings = {{value_of(FactorSharding::parse("SS(0,3)")), {}}};
  const Strategies all(op, "2", options);
  // Rows 0, 1, 2, 3 have pieces of two elements.
  CHECK(all.has("SS(1,3)->SS(0,12)"));
  // Four rows are not three pieces of equal size.
  CHECK_FALSE(all.has("SS(0,3)->SS(0,3)"));
}

std::vector<Carried> carried_of(const OpSchema& op) {
  return carried_factors(value_of(library().index_space(op)));
}

TEST_CASE("operators that need positions have one run per rank") {
  CHECK(carried_of(applied("aten.relu.default", {"f32[4]"})) ==
        std::vector{Carried::kAny});
  const auto lower = carried_of(applied("aten.tril.default", {"f32[2,4,4]"}));
  CHECK(lower ==
        std::vector{Carried::kAny, Carried::kMeshOrder, Carried::kMeshOrder});
  const auto matrix = carried_of(applied("aten.trace.default", {"f32[4,4]"}));
  CHECK(matrix == std::vector{Carried::kAnyOrder, Carried::kAnyOrder});
  const auto numbers =
      carried_of(applied("aten.arange.default", {}, {{"end", 4.0}}));
  CHECK(numbers[0] == Carried::kAnyOrder);
  const auto rows =
      carried_of(applied("aten.embedding.default", {"f32[8,4]", "i64[6]"}));
  CHECK(std::count(rows.begin(), rows.end(), Carried::kAnyOrder) == 1);
  const auto scanned = carried_of(
      applied("aten.cumsum.default", {"f32[4,6]"}, {{"dim", std::int64_t{1}}}));
  CHECK(scanned == std::vector{Carried::kAny, Carried::kAnyOrder});
  for (const Carried carried :
       carried_of(applied("aten.bernoulli.default", {"f32[4,4]"}))) {
    CHECK(carried == Carried::kMeshOrder);
  }
}

TEST_CASE("a program without positions accepts any sharding") {
  CHECK(carried_of(
            applied("aten._softmax.default", {"f32[4,6]"},
                    {{"dim", std::int64_t{1}}, {"half_to_float", false}})) ==
        std::vector{Carried::kAny, Carried::kAny});
}

TEST_CASE("ranks gather the best elements in mesh order") {
  const auto best = carried_of(
      applied("aten.topk.default", {"f32[4,6]"}, {{"k", std::int64_t{2}}}));
  CHECK(std::count(best.begin(), best.end(), Carried::kMeshOrder) >= 1);
}

TEST_CASE("the sharding of one factor is a layout of one dim") {
  const FactorShardings all(value_of(Layout::parse("SS(2,3)@1,S(1),S(2)@0")));
  CHECK(to_string(all.of(2)) == "SS(0,3)@1,R,S(0)@0");
  CHECK(to_string(all.of(1)) == "R,S(0),R");
  CHECK(to_string(all.of(0)) == "R,R,R");
  CHECK(FactorShardings().is_mesh_order());
}

}  // namespace
}  // namespace shardprop

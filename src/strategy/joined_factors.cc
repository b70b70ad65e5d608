#include "strategy/joined_factors.h"

#include "base/index.h"

#include <shardprop/placement/placement.h>

#include <algorithm>

namespace shardprop {
namespace {

bool excludes(const IndexSpace& space, std::int16_t joined,
              std::int16_t other) {
  if (index(joined) >= space.factors.size()) return false;
  const DimFactors& joins = space.factor(joined).joins;
  return !joins.empty() && other != joins[0] &&
         std::find(joins.begin(), joins.end(), other) != joins.end();
}

// Returns whether `outside` is a factor whose shards the program of `other` does not
// accept.
bool stops_program(const IndexSpace& space, std::int16_t outside,
                   std::int16_t other) {
  const auto is_factor = [&](std::int16_t choice) {
    return index(choice) < space.factors.size();
  };
  return is_factor(outside) && is_factor(other) &&
         space.factor(outside).outside_program &&
         space.factor(other).program != ProgramUse::kNever;
}

}  // namespace

bool exclude_each_other(const IndexSpace& space, std::int16_t a,
                        std::int16_t b) {
  return excludes(space, a, b) || excludes(space, b, a) ||
         stops_program(space, a, b) || stops_program(space, b, a);
}

bool joins_for_need(const IndexSpace& space, const DeviceMesh& mesh,
                    const std::vector<FactorShards>& shards,
                    std::size_t factor) {
  const DimFactors& joins = space.factors[factor].joins;
  const FactorShards& own = shards[factor];
  if (joins.empty() || own.mesh_dims.empty() ||
      !space.factor(joins[0]).shardable()) {
    return true;
  }
  const FactorShards& first = shards[index(joins[0])];
  if (!first.even) return false;
  std::int64_t parts = 1;
  for (const std::int32_t m : own.mesh_dims) parts *= mesh.size(m);
  for (const std::int32_t m : first.mesh_dims) parts *= mesh.size(m);
  return space.factor(joins[0]).size % parts != 0;
}

bool has_aligned_parts(const LocalContext& context, FactorId joined) {
  const FactorId first = context.space.factor(joined).joins[0];
  if (context.shards(first)) return false;
  const FactorShards shards = factor_shards(context, joined);
  const std::int64_t run =
      context.space.factor(joined).size / context.space.factor(first).size;
  return shards.even &&
         (shards.largest % run == 0 || run % shards.largest == 0);
}

bool cut_as_one(const IndexSpace& space,
                const std::vector<FactorShards>& shards, FactorId joined,
                int dim, Placements& placements, ShardOrder& order) {
  const FactorShards& first = shards[index(space.factor(joined).joins[0])];
  // The pieces of a strided cut are not one part of the dim.
  if (!first.split_factors.empty()) return false;
  std::int8_t place = 0;
  for (const FactorShards* cut : {&first, &shards[index(joined)]}) {
    for (std::size_t i = 0; i < cut->mesh_dims.size(); ++i) {
      const auto m = index(cut->mesh_dims[i]);
      const int split = cut->split_factors.empty() ? 1 : cut->split_factors[i];
      placements[m] = Placement::strided_shard(dim, split);
      order[m] = place++;
    }
  }
  return true;
}

}  // namespace shardprop

#include <shardprop/strategy/factor_sharding.h>

#include "base/index.h"

#include <shardprop/base/error.h>

namespace shardprop {

FactorSharding FactorShardings::of(int factor) const {
  const auto dims = index(of_all_.mesh_ndim());
  Placements placements(dims);
  ShardOrder order(dims);
  for (const std::int32_t m : of_all_.cuts(factor)) {
    placements[index(m)] = of_all_[m].with_dim(0);
    order[index(m)] = of_all_.shard_order()[index(m)];
  }
  auto sharding = FactorSharding::create(std::move(placements), order);
  if (!sharding) throw InternalError("the sharding of a factor is malformed");
  return *std::move(sharding);
}

}  // namespace shardprop

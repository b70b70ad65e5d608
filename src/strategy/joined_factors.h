// Joined factors (Factor::joins): mesh dims shard the dims of several factors as
// one.
//
//   attention of 32 query heads (2 groups of 16) on 8 ranks:
//     query [b,(gr),s,d] S(1)    4 heads each; h is sharded
//     key   [b,g,t,d]    R       both heads; the program selects the rank's
#pragma once

#include "strategy/factor_shards.h"

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/ops/index_space.h>
#include <shardprop/placement/layout.h>
#include <shardprop/strategy/local_context.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardprop {

// Returns whether one choice is a joined factor and the other one of its factors
// after the first, or whether one needs a program that cannot run while the other is
// sharded (Factor::outside_program).
bool exclude_each_other(const IndexSpace& space, std::int16_t a,
                        std::int16_t b);

// Returns whether the factor is not joined, not sharded, or sharded because its
// first factor is not shardable or too small: equal shards of the first factor
// on the mesh dims of both would do without it. `shards` has those of every
// factor up to `factor`.
bool joins_for_need(const IndexSpace& space, const DeviceMesh& mesh,
                    const std::vector<FactorShards>& shards,
                    std::size_t factor);

// Returns whether each rank's part of a sharded joined factor is a run of full
// elements of its first factor, or is inside of one, and all parts are equal.
// False if the first factor is sharded, too.
bool has_aligned_parts(const LocalContext& context, FactorId joined);

// Adds the cuts of a tensor dim whose joined factor is sharded: those of the
// first of its factors, then its own within each part. Returns false if the
// parts are not in order.
bool cut_as_one(const IndexSpace& space,
                const std::vector<FactorShards>& shards, FactorId joined,
                int dim, Placements& placements, ShardOrder& order);

}  // namespace shardprop

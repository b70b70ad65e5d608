// Says which factors of a call accept which shardings.
#pragma once

#include <shardprop/ops/index_space.h>
#include <shardprop/strategy/factor_sharding.h>

#include <cstdint>
#include <vector>

namespace shardprop {

enum class Carried : std::uint8_t {
  kMeshOrder,  // only shardings in mesh order
  kAnyOrder,   // any order of mesh dims, so that each rank has one run
  kAny,        // any sharding
};

// Returns this for each factor. A factor accepts any sharding if it is parallel
// or has a program, and no rank needs to know which elements it has.
//
//   relu, sum, mm, softmax    all factors: kAny
//   arange, rows of an index  kAnyOrder (the program reads the offset)
//   rand                      kMeshOrder (draws by global element)
//   topk along its dim        kMeshOrder (the program gathers values in order)
std::vector<Carried> carried_factors(const IndexSpace& space);

// Returns whether a factor accepts a sharding in canonical form.
bool accepts(Carried carried, const FactorSharding& sharding);

}  // namespace shardprop

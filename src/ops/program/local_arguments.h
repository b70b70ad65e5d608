// The arguments of a step of a decomposed program that differ between ranks.
#pragma once

#include <shardprop/ops/decomposition.h>
#include <shardprop/ops/rank_scalar.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace shardprop {

// `StepShard` is a sharded factor of a step. It has the shards of `factor`, a factor of
// the operator with `size` elements.
struct StepShard {
  int own = 0;
  int factor = 0;
  std::int64_t size = 1;
};

// Returns IndexSpace::local_arguments of a step with these shards. The sizes of its
// sharded factors become sizes of the operator's factors. Returns nullopt if a number
// of a rank is another one, such as an offset.
//
//   view f32[4,6,8] -> f32[4,48], dim 0 sharded: size = [size of factor 0, 48]
std::optional<std::vector<LocalArgument>> local_arguments(
    const DecompositionStep& step, std::span<const StepShard> shards);

}  // namespace shardprop

// `LossReduction` is the reduction of a loss, with PyTorch's numbers.
#pragma once

#include "ops/op_call.h"

#include <cstdint>

namespace shardprop {

enum class LossReduction : std::int64_t { kNone = 0, kMean = 1, kSum = 2 };

inline LossReduction reduction_of(const OpCall& call) {
  const std::int64_t reduction = call.integer("reduction");
  require(reduction >= 0 && reduction <= 2,
          "`reduction` is not 0 (none), 1 (mean) or 2 (sum)");
  return static_cast<LossReduction>(reduction);
}

}  // namespace shardprop

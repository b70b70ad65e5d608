// `TransferTime` is the time of a transfer. share_of_step() returns the share of
// one micro-batch in a transfer that runs once a step.
//
//   --accumulate 4 --overlap 0.5     8 + 8 ns a step     2 + 2 ns
#pragma once

#include "base/saturating.h"

#include <shardprop/plan/plan_options.h>

#include <cstdint>

namespace shardprop {

struct TransferTime {
  std::int64_t waited = 0;        // the program waits for this part
  std::int64_t overlappable = 0;  // this part may overlap compute
};

// Returns the share, rounded down. A plan states only the sum of both parts, so
// the overlappable part is a share of this sum, as in program_prices().
inline TransferTime share_of_step(const PlanOptions& options,
                                  const TransferTime& step) {
  const std::int64_t share =
      sat_add(step.waited, step.overlappable) / options.accumulate;
  if (step.overlappable == 0) return {share, 0};
  const std::int64_t overlappable =
      saturated(static_cast<double>(share) * options.overlap);
  return {share - overlappable, overlappable};
}

}  // namespace shardprop

// Checks that the ranks' collectives meet before any of them runs. A program of
// a rank has no control flow, so its calls are known.
//
//   rank 0: all_reduce over tp    rank 1: all_reduce over dp
//   -> the ranks wait for each other
#pragma once

#include "verify/rank_groups.h"

#include <shardprop/base/result.h>
#include <shardprop/mesh/collective_kind.h>
#include <shardprop/program/rank_programs.h>

#include <array>
#include <cstdint>
#include <iterator>

namespace shardprop::verification {

using CollectiveCounts =
    std::array<std::int64_t, std::size(kAllCollectiveKinds)>;

// Returns the calls of the busiest rank, by kind. A rank starts a collective
// without waiting, and waits at the first use of its result. Errors:
//
//   * kUnknownOperator, kReduction, kGroup, kNotInGroup: a call cannot run;
//   * kCollectiveMismatch: members of a group call different collectives;
//   * kTimeout: the ranks wait for each other. The notes say for what.
Result<CollectiveCounts> check_collectives(const RankPrograms& programs,
                                           const RankGroups& groups);

}  // namespace shardprop::verification

// Finds paths that avoid strided shards, for pairs of layouts with too many
// strided shards to search.
#pragma once

#include "redistribute/search.h"

#include <optional>

namespace shardprop::redistribute {

// Returns a gather of every tensor dim that `source` cuts into strided shards,
// a path without strided shards, and a slice of the strided dims of `target`.
// The middle path has the least cost, but the total path may not. The problem's
// memory limit is ignored. Precondition: no shard of `source` is a partial of
// `target`.
//
//   SS(0,2),R,S(1) -> R,S(0),R   gathers dim 0, then R,R,S(1) -> R,S(0),R
std::optional<Path> path_around_strides(const SearchProblem& problem,
                                        const State& source,
                                        const State& target);

}  // namespace shardprop::redistribute

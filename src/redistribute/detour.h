// Paths around strided shards, for pairs of layouts with too many of them to
// search.
#pragma once

#include "redistribute/search.h"

#include <optional>

namespace shardprop::redistribute {

// A gather of every tensor dim that `source` cuts into strided shards, a path
// of least cost without strided shards, and a slice of those that `target`
// cuts so. Not of least cost as a whole. The problem's memory limit is not
// heeded. Precondition: no shard of `source` is a partial of `target`.
//
//   SS(0,2),R,S(1) -> R,S(0),R   gathers dim 0, then R,R,S(1) -> R,S(0),R
std::optional<Path> path_around_strides(const SearchProblem& problem,
                                        const State& source,
                                        const State& target);

}  // namespace shardprop::redistribute

// Concatenates runs of elements along one dim. If runs repeat, the number of
// operators is small and independent of the number of runs.
//
//   rearranged(x f32[12], 0, [0,3) [4,7) [8,11))
//     slice to [0,11), unfold to [3,3], reshape to f32[9]
#pragma once

#include "io/emit/torch_graph.h"

#include <shardprop/placement/local_region.h>

#include <cstdint>
#include <vector>

namespace shardprop::emit {

// A strip is a run, or a list of strips that is repeated `count` times,
// concatenated.
struct Strip {
  // The run in the first round of every enclosing loop. `steps` has the
  // distance that it moves from round to round, outermost loop first.
  Interval run;
  std::vector<std::int64_t> steps;
  // Nonempty if the strip is a loop.
  std::vector<Strip> parts;
  std::int64_t count = 1;

  friend bool operator==(const Strip&, const Strip&) = default;
};

// Merges adjacent runs and turns repetitions into loops:
//   [0,3) [4,7) [8,11) [12,13)  ->  3 x [0,3) by 4, then [12,13)
std::vector<Strip> fold(const std::vector<Interval>& runs);

// Returns the runs of dim `dim` of x, in this order. Precondition: x has them.
TorchId rearranged(TorchGraph& graph, TorchId x, int dim,
                   const std::vector<Interval>& runs);

}  // namespace shardprop::emit

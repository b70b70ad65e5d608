// Runs of elements along one dim, put one behind another: in operators that are
// few where the runs repeat, however many there are.
//
//   rearranged(x f32[12], 0, [0,3) [4,7) [8,11))
//     slice to [0,11), unfold to [3,3], reshape to f32[9]
#pragma once

#include "io/emit/torch_graph.h"

#include <shardprop/placement/local_region.h>

#include <cstdint>
#include <vector>

namespace shardprop::emit {

// A run, or strips that are repeated `count` times, one behind another.
struct Strip {
  // A run: of the first round of every loop around it, and how far it moves
  // from round to round, outermost loop first.
  Interval run;
  std::vector<std::int64_t> steps;
  // A loop, if it has any.
  std::vector<Strip> parts;
  std::int64_t count = 1;

  friend bool operator==(const Strip&, const Strip&) = default;
};

// Neighbours are joined and what repeats becomes loops:
//   [0,3) [4,7) [8,11) [12,13)  ->  3 x [0,3) by 4, then [12,13)
std::vector<Strip> fold(const std::vector<Interval>& runs);

// The runs of dim `dim` of x, in this order. Precondition: x has them.
TorchId rearranged(TorchGraph& graph, TorchId x, int dim,
                   const std::vector<Interval>& runs);

}  // namespace shardprop::emit

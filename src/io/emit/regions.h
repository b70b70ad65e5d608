// Parts of local tensors in operators: taken out, and put together again.
//
//   select(x, held [0,4)+[8,12), part [2,4)+[8,9)):
//     cat([slice(x, 0, 2, 4), slice(x, 0, 4, 5)], 0)
#pragma once

#include "io/emit/torch_graph.h"

#include <shardprop/placement/local_region.h>

#include <cstdint>
#include <vector>

namespace shardprop::emit {

// Elements of one dim.
std::int64_t size_of(const Intervals& runs);
// What both hold, in the order of `b`.
Intervals common(const Intervals& a, const Intervals& b);
// Where the elements of `part` stand among those of `held`; neighbours joined.
// Precondition: `held` contains `part`.
Intervals places(const Intervals& held, const Intervals& part);

// What both regions hold.
LocalRegion common_part(const LocalRegion& a, const LocalRegion& b);

// The elements of `part` out of `x`, which holds `held`, row-major within the
// part. Precondition: `held` contains `part`.
TorchId select(TorchGraph& graph, TorchId x, const LocalRegion& held,
               const LocalRegion& part);

// A tensor of the same whole that is a part of another: its region.
struct Piece {
  TorchId value;
  LocalRegion region;
};
// The tensor that holds `wanted`, of which the pieces are a partition.
TorchId assemble(TorchGraph& graph, const std::vector<Piece>& pieces,
                 const LocalRegion& wanted);

}  // namespace shardprop::emit

// Operators that select parts of local tensors and assemble tensors from parts.
//
//   select(x, held [0,4)+[8,12), part [2,4)+[8,9)):
//     cat([slice(x, 0, 2, 4), slice(x, 0, 4, 5)], 0)
#pragma once

#include "io/emit/torch_graph.h"

#include <shardprop/placement/local_region.h>

#include <cstdint>
#include <vector>

namespace shardprop::emit {

// Returns the number of elements in the runs of one dim.
std::int64_t size_of(const Intervals& runs);
// Returns the intersection, in the order of `b`.
Intervals common(const Intervals& a, const Intervals& b);
// Returns the positions of the elements of `part` among the elements of `held`.
// Adjacent runs are merged. Precondition: `held` contains `part`.
Intervals places(const Intervals& held, const Intervals& part);

// Returns the intersection of both regions.
LocalRegion common_part(const LocalRegion& a, const LocalRegion& b);

// Returns the elements of `part` from `x`, which holds `held`, in row-major
// order of the part. Precondition: `held` contains `part`.
TorchId select(TorchGraph& graph, TorchId x, const LocalRegion& held,
               const LocalRegion& part);

// A piece is a local tensor and its region of the full tensor.
struct Piece {
  TorchId value;
  LocalRegion region;
};
// Returns the tensor that holds `wanted`. Precondition: the pieces are a
// partition of `wanted`.
TorchId assemble(TorchGraph& graph, const std::vector<Piece>& pieces,
                 const LocalRegion& wanted);

}  // namespace shardprop::emit

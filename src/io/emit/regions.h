// Parts of local tensors in operators: taken out, and put together again.
//
//   select(x, held [0,4)+[8,12), part [2,4)+[8,9)):
//     cat([slice(x, 0, 2, 4), slice(x, 0, 4, 5)], 0)
#pragma once

#include "io/emit/torch_graph.h"

#include <shardprop/placement/local_region.h>

#include <vector>

namespace shardprop::emit {

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

// Operators that this and others share.
TorchId slice(TorchGraph& graph, TorchId x, int dim, std::int64_t start,
              std::int64_t end);
TorchId cat(TorchGraph& graph, std::vector<TorchId> parts, int dim);
TorchId reshape(TorchGraph& graph, TorchId x, Dims shape);
TorchId permute(TorchGraph& graph, TorchId x,
                const std::vector<std::int64_t>& order);
TorchId contiguous(TorchGraph& graph, TorchId x);
TorchId cast(TorchGraph& graph, TorchId x, DType dtype);
TorchId scaled(TorchGraph& graph, TorchId x, double factor);
// Zeros behind the last element of a dim, up to `size`.
TorchId padded(TorchGraph& graph, TorchId x, int dim, std::int64_t size);
TorchId filled(TorchGraph& graph, const Dims& shape, DType dtype,
               std::int64_t value, const Argument& device);

}  // namespace shardprop::emit

// Functions that add PyTorch operators which move, pad and cast a local tensor.
// An operator that would change nothing is not added.
#pragma once

#include "io/emit/torch_graph.h"

#include <cstdint>
#include <vector>

namespace shardprop::emit {

// An integer argument of a call.
inline Argument integer(std::int64_t value) { return value; }

TorchId slice(TorchGraph& graph, TorchId x, int dim, std::int64_t start,
              std::int64_t end);
TorchId cat(TorchGraph& graph, std::vector<TorchId> parts, int dim);
TorchId reshape(TorchGraph& graph, TorchId x, Dims shape);
TorchId permute(TorchGraph& graph, TorchId x,
                const std::vector<std::int64_t>& order);
TorchId contiguous(TorchGraph& graph, TorchId x);
// Returns x, dense in memory, with its dims in the memory order of `whole`.
// Precondition: both have the same rank.
TorchId in_order_of(TorchGraph& graph, TorchId x, const TensorMeta& whole);
TorchId cast(TorchGraph& graph, TorchId x, DType dtype);
// `as_bytes` views every element as its bytes, along a new last dim;
// `from_bytes` is the inverse. Precondition: `x` is contiguous.
TorchId as_bytes(TorchGraph& graph, TorchId x);
TorchId from_bytes(TorchGraph& graph, TorchId x, DType dtype);
TorchId scaled(TorchGraph& graph, TorchId x, double factor);
// Appends zeros to a dim, up to `size`.
TorchId padded(TorchGraph& graph, TorchId x, int dim, std::int64_t size);
TorchId filled(TorchGraph& graph, const Dims& shape, DType dtype,
               std::int64_t value, const Argument& device);
// Views a dim as `count` windows of `size` elements, each `step` (>= 0) after
// the one before. The dim becomes two, [count, size]. Precondition: the windows
// fill the dim.
TorchId windows(TorchGraph& graph, TorchId x, int dim, std::int64_t count,
                std::int64_t size, std::int64_t step);

}  // namespace shardprop::emit

// A grid is a set of consecutive messages of one rank that have equal sizes.
// They differ in one dim, or form a grid over several dims. The same operators
// pack and unpack all messages of a grid.
//
//   f32[8,6] to 8 ranks, S(0),S(1) -> rows 0-1 columns 0-2, rows 0-1 columns
//   3-5, rows 2-3 columns 0-2, ...: one grid of 4 parts of dim 0, slowest, and 2
//   of dim 1
#pragma once

#include "io/emit/torch_graph.h"

#include <shardprop/placement/local_region.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardprop::emit {

// A message is its intervals in the rank's tensor, by tensor dim.
using Message = std::vector<Intervals>;
// Returns `part` relative to the region `held`. Precondition: `held` contains
// `part`.
Message message(const LocalRegion& held, const LocalRegion& part);

struct MessageGrid {
  // By tensor dim: the parts of the messages along it, equally large; a single
  // part if all messages have the same part.
  std::vector<std::vector<Intervals>> parts;
  // The dims along which the messages differ, slowest first.
  std::vector<std::size_t> order;

  std::int64_t numel() const;
};

// Groups the messages, in their order. Precondition: no message is empty.
std::vector<MessageGrid> message_grids(const std::vector<Message>& messages);

// Packs the messages of x, each in row-major order, one after another: f32[n].
TorchId pack(TorchGraph& graph, TorchId x, const MessageGrid& grid);

// Returns the tensor of this shape whose messages are in `buffer`.
// Precondition: the messages are a partition of the tensor, and the places in
// each ascend.
TorchId unpack(TorchGraph& graph, TorchId buffer,
               const std::vector<MessageGrid>& grids, const Dims& shape);

}  // namespace shardprop::emit

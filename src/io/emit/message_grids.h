// The messages of one rank in an exchange, in few grids: those that lie one
// behind another, are equally large, and differ in one dim, or in several as a
// grid does, are packed and unpacked by the same operators.
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

// Places in the rank's tensor, by tensor dim.
using Message = std::vector<Intervals>;
// `part` of what the rank holds. Precondition: `held` contains it.
Message message(const LocalRegion& held, const LocalRegion& part);

struct MessageGrid {
  // By tensor dim: the parts of the messages along it, equally large; one where
  // all messages have the same.
  std::vector<std::vector<Intervals>> parts;
  // The dims along which they differ, slowest first.
  std::vector<std::size_t> order;

  std::int64_t numel() const;
};

// The messages, in their order. Precondition: none is empty.
std::vector<MessageGrid> message_grids(const std::vector<Message>& messages);

// The messages out of x, row-major each, one behind another: f32[n].
TorchId pack(TorchGraph& graph, TorchId x, const MessageGrid& grid);

// The tensor of this shape of which `buffer` holds the messages: they are a
// partition of it, each with ascending places.
TorchId unpack(TorchGraph& graph, TorchId buffer,
               const std::vector<MessageGrid>& grids, const Dims& shape);

}  // namespace shardprop::emit

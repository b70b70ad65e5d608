// Operators on lists of tensors, taken apart: one operator for each place.
//
//   _foreach_add_.List([a, b], [c, d])   add_.Tensor(a, c); add_.Tensor(b, d)
//   _fused_adamw_([p, q], [g, h], ...)   _fused_adamw_([p], [g], ...); ...([q],
//   ...)
//
// The elements of a list have nothing to do with each other, and each may be
// laid out as it likes.
#pragma once

#include <shardprop/graph/graph_builder.h>

#include <cstddef>
#include <vector>

namespace shardprop {

struct ListPart {
  NewNode node;
  // Outputs of the whole operator that are those of `node`, in its order.
  std::vector<std::size_t> outputs;
};

// Empty where the operator is not such a one, or not with these lists.
std::vector<ListPart> split_lists(const NewNode& node,
                                  const OpLibrary& library);

}  // namespace shardprop

// split_lists() replaces an operator on lists of tensors by one operator for
// each place.
//
//   _foreach_add_.List([a, b], [c, d])   add_.Tensor(a, c); add_.Tensor(b, d)
//   _fused_adamw_([p, q], [g, h], ...)   _fused_adamw_([p], [g], ...); ...([q],
//   ...)
//
// The elements of a list do not depend on each other, so each may have its own
// layout.
#pragma once

#include <shardprop/graph/graph_builder.h>

#include <cstddef>
#include <vector>

namespace shardprop {

struct ListPart {
  NewNode node;
  // The outputs of the full operator that `node` produces, in its order.
  std::vector<std::size_t> outputs;
};

// Returns an empty list if the operator does not work on lists element by
// element, or cannot be split for these lists.
std::vector<ListPart> split_lists(const NewNode& node,
                                  const OpLibrary& library);

}  // namespace shardprop

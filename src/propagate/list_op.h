// Operators on lists (foreach): the plain operator, done to every element. Each
// element is propagated for itself, so that a list may hold tensors of
// different shapes in different layouts.
//
//   _foreach_add.List([a, b], [c, d], alpha=2)
//     add.Tensor(a, c, alpha=2), add.Tensor(b, d, alpha=2)
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/ops/op_library.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace shardprop {

struct ElementCall {
  OpSchema op;                        // of the plain operator
  std::vector<std::size_t> operands;  // its operands among those of the lists
  // For each argument of the operator on lists: that of the plain one.
  std::vector<std::size_t> arguments;
};

// nullopt where the operator is none on lists, or no plain one fits it.
std::optional<std::vector<ElementCall>> element_calls(const OpLibrary& library,
                                                      const OpSchema& op);

}  // namespace shardprop

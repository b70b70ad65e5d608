// Derives declarations of operators that the library does not know.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/ops/op_library.h>

#include "io/pt2_program.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop::pt2 {

bool is_higher_order(std::string_view target);

// The arguments that an undeclared operator writes.
struct WrittenArguments {
  std::vector<std::string> names;
  // True if the last results of the node are their new values.
  bool are_results = false;
};

// Guesses the arguments that an undeclared operator writes. An operator that
// returns nothing writes its first tensor, by PyTorch's convention.
WrittenArguments guessed_writes(const Node& node);

// Returns the number of results of the node, without new values of its
// arguments.
std::size_t own_results(const Node& node, const WrittenArguments& written);

// Returns the value of that argument in the call; nullopt if it is absent.
std::optional<std::string_view> tensor_of_argument(const Node& node,
                                                   std::string_view name);

// Returns the declaration of a custom or higher-order operator, derived from
// its call. Its last results are the new values of the arguments that it
// writes: "my::op.default(Tensor x, Tensor y, int n) -> (Tensor, Tensor y)".
// Error: kUnknownOperator for malformed names, and for names in PyTorch's own
// namespaces.
Result<std::string> declaration_of(const Node& node,
                                   const WrittenArguments& written,
                                   const OpLibrary& library);

}  // namespace shardprop::pt2

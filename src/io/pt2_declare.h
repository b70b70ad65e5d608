// Declarations of operators that nobody declared.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/ops/op_library.h>

#include "io/pt2_program.h"

#include <optional>
#include <string>
#include <string_view>

namespace shardprop::pt2 {

bool is_higher_order(std::string_view target);

// What an operator that returns nothing is taken to write: by PyTorch's custom
// its first tensor argument, whose new value its declaration then returns.
std::optional<std::string_view> written_argument(const Node& node);

// A custom or higher-order operator as its call shows it:
// "my::op.default(Tensor x, int n) -> (Tensor)". Error: kUnknownOperator for names that are none, and for those of
// PyTorch's own namespaces.
Result<std::string> declaration_of(const Node& node, const OpLibrary& library);

}  // namespace shardprop::pt2

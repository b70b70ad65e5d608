// Declarations of operators that nobody declared.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/ops/op_library.h>

#include "io/pt2_program.h"

#include <string>

namespace shardprop::pt2 {

// A custom operator as its call shows it: "my::op.default(Tensor x, int n) ->
// (Tensor)". Error: kUnknownOperator for names that are none, and for those of
// PyTorch's own namespaces.
Result<std::string> declaration_of(const Node& node,
                                   const OpLibrary& library);

}  // namespace shardprop::pt2

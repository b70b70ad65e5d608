// A row of the operator table as text, for languages that cannot call the
// builders: a form and its modifiers.
//
//   parse_row("einsum mk,kn->mn")
//   parse_row("pointwise.promoted.additive")
//   parse_row("reduction sum")
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/ops/op_definition.h>

#include <string_view>

namespace shardprop::c {

// Error: kInvalidArgument, with what there is.
Result<OpDefinition> parse_row(std::string_view text);

}  // namespace shardprop::c

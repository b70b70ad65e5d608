// `parse_rule` reads an operator definition from text, for operators that only
// a user's graph has.
//
//   parse_rule("pointwise()")                elementwise, operands broadcast
//   parse_rule("...mk,kn->...mn")            a matmul; k is summed
//   parse_rule("bh[s]d,bh[t]d->bh[s]d")      no matmul: b, h and d are
//                                            shardable, s and t unsharded
//   parse_rule("reduction(sum)")             over its arguments dim, keepdim
//   parse_rule("along(dim)")                 over its argument dim
//   parse_rule("batch(0)")                   dim 0 of all tensors only
//
// The text is a form followed by properties, each after a dot:
//   .additive() .multilinear() .linear_in(x) .nondecreasing() .nonincreasing()
//   .lattice(max) .passes(x,y) .ignores_values(x) .blocked(dim) .random()
// The text of the definition is the rule without blanks. Results have the
// shapes and dtypes of the graph.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/ops/op_definition.h>

#include <string_view>

namespace shardprop {

// Error: kInvalidArgument, which names the column.
Result<OpDefinition> parse_rule(std::string_view text);

// Checks that the text is a sharding rule as einsum() requires it:
//
// 1. Terms consist of letters, each at most once in its term.
// 2. `(ab)` and `[s]` are not empty and do not nest.
// 3. A term has at most one `...`, and `+` only at the start of an operand's
//    term.
// 4. Every letter of a result is also in an operand.
//
// Error: kInvalidArgument, which names the column.
Result<void> check_notation(std::string_view text);

// The named dims of all tensors are sharded together; all other dims are
// unsharded. A tensor lacks the dim if its size differs from that of the first
// tensor.
OpDefinition batch(std::vector<int> dims);

}  // namespace shardprop

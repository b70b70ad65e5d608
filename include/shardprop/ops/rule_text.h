// Rule: a row as text, for operators that only a user's graph knows.
//
//   parse_rule("pointwise()")                elementwise, operands broadcast
//   parse_rule("...mk,kn->...mn")            a product; k is summed
//   parse_rule("bh[s]d,bh[t]d->bh[s]d")      no product: b, h and d are cut, s
//                                            and t held whole
//   parse_rule("reduction(sum)")             over its arguments dim, keepdim
//   parse_rule("along(dim)")                 over its argument dim
//   parse_rule("batch(0)")                   dim 0 of all tensors, and no more
//
// A form, then what is true of it besides, each behind a dot:
//   .additive() .multilinear() .linear_in(x) .nondecreasing() .nonincreasing()
//   .lattice(max) .passes(x,y) .ignores_values(x) .blocked(dim) .random()
// The text of the definition is the rule again, less blanks. Results have the
// shapes and dtypes that the graph says.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/ops/op_definition.h>

#include <string_view>

namespace shardprop {

// Error: kInvalidArgument, with the column.
Result<OpDefinition> parse_rule(std::string_view text);

// Whether the text is factor notation as einsum() requires it: terms of letters,
// each at most once in its term; `(ab)` and `[s]`, which are not empty and do not
// nest; at most one `...` in a term; `+` only at the start of an operand's term;
// and no letter that only a result has. Error: kInvalidArgument, with the column.
Result<void> check_notation(std::string_view text);

// The named dims of every tensor that has them go together; all else is whole.
// A tensor whose dim is of another size than the first tensor's lacks it.
OpDefinition batch(std::vector<int> dims);

}  // namespace shardprop

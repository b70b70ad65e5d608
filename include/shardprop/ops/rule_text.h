// `parse_rule` reads an operator definition from text: a form, followed by
// modifiers, each after a dot. docs/row_language.md is the reference, with an
// example per construct.
//
//   parse_rule("mk,kn->mn")                a matrix product; k is summed
//   parse_rule("b[s]d,b[t]d->b[s]d")       no product: s and t are not sharded
//   parse_rule("einsum(m[k],[k]n->mn)")    a product that is not sharded over k
//   parse_rule("pointwise().additive()")   elementwise, operands broadcast
//   parse_rule("reduction(sum)")           over its arguments dim, keepdim
//   parse_rule("along(dim)")               over its argument dim
//   parse_rule("batch(0)")                 dim 0 of all tensors only
//
// The command line (--rule), Python (rules=), saved plans and C read the same
// language. The text of the definition is canonical, and parses to the same
// definition.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/ops/op_definition.h>

#include <memory>
#include <string_view>
#include <vector>

namespace shardprop {

class FunctionSchema;
class OpLibrary;

// Returns a definition for operators that only a user's graph has: its results
// have the shapes, dtypes and strides of the graph, unless the text states them.
// Errors, which name the column: kInvalidArgument, kProgramSyntax.
Result<OpDefinition> parse_rule(std::string_view text);

// Returns a definition like those of the library: results that the text does not
// describe have the dtype of the first operand and are contiguous.
// Errors, which name the column: kInvalidArgument, kProgramSyntax.
Result<OpDefinition> parse_definition(std::string_view text);

// Checks the names in a rule against the overloads that it is for: arguments and their
// types, factors, the number of results, the arguments that its words read, and the
// names and functions of its programs. A rule without overloads has no error.
// OpLibrary::with() checks the printed text of a definition, which has other columns.
// Errors, which name the column: kInvalidArgument, kProgramSyntax.
Result<void> check_rule(
    std::string_view text,
    const std::vector<std::shared_ptr<const FunctionSchema>>& overloads,
    const OpLibrary& library);

// Returns the overloads that a row of this name is for: all functional ones of
// "aten.add", or the declared "mylib.f.default". Empty if none is declared.
std::vector<std::shared_ptr<const FunctionSchema>> overloads_of_row(
    const OpLibrary& library, std::string_view row);

// The named dims of all tensors are sharded together; all other dims are
// unsharded. A tensor lacks the dim if its size differs from that of the first
// tensor.
OpDefinition batch(std::vector<int> dims);

}  // namespace shardprop

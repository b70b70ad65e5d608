// Counts the operands and results that a rule may state for an operator.
#pragma once

#include <shardprop/ops/function_schema.h>
#include <shardprop/ops/notation.h>

#include <cstddef>
#include <optional>

namespace shardprop {

// Returns the number of tensors and lists of tensors that it declares.
std::size_t tensor_count(const FunctionSchema& function);

// Returns the number of arguments that it writes.
std::size_t written_count(const FunctionSchema& function);

// Returns whether the operands may be those of the notation. Each tensor of a list takes
// a term of its own, if the term has no `*`.
bool may_have_terms(const FunctionSchema& function, const Notation& notation);

// Returns the most results that a rule may state; nullopt if a list may have any
// number. A written argument is a result of the functional form of the operator. A rule
// of an operator without results may state one, as `pointwise()` does.
std::optional<std::size_t> most_results(const FunctionSchema& function);

// Returns whether a rule may state that number of results.
bool may_have_results(const FunctionSchema& function, std::size_t count);

}  // namespace shardprop

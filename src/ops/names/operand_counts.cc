#include "ops/names/operand_counts.h"

#include <algorithm>

namespace shardprop {
namespace {

// Returns the number of tensors up to the last one that every call gives.
std::size_t least_operands(const FunctionSchema& function) {
  std::size_t count = 0;
  std::size_t needed = 0;
  for (const ArgumentSchema& one : function.arguments()) {
    if (one.type != ArgumentType::kTensor) continue;
    ++count;
    if (!one.is_optional && !one.has_default) needed = count;
  }
  return needed;
}

// Returns the number of operands that the notation states. `->{a:4}` has an empty
// term, which is a tensor without dims unless the operator has no tensors.
std::size_t terms_of(const FunctionSchema& function, const Notation& notation) {
  const bool is_empty =
      notation.inputs.size() == 1 && notation.inputs[0] == Term();
  return is_empty && tensor_count(function) == 0 ? 0 : notation.inputs.size();
}

}  // namespace

std::size_t tensor_count(const FunctionSchema& function) {
  const auto& all = function.arguments();
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [](const ArgumentSchema& one) {
        return one.type == ArgumentType::kTensor;
      }));
}

std::size_t written_count(const FunctionSchema& function) {
  const auto& all = function.arguments();
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [](const ArgumentSchema& one) {
        return one.alias && one.alias->writes;
      }));
}

bool may_have_terms(const FunctionSchema& function, const Notation& notation) {
  std::size_t term = 0;
  for (const ArgumentSchema& one : function.arguments()) {
    if (one.type != ArgumentType::kTensor) continue;
    const bool is_each =
        term < notation.inputs.size() && notation.inputs[term].is_each;
    if (one.is_list && !is_each) return true;
    ++term;
  }
  const std::size_t count = terms_of(function, notation);
  return count <= tensor_count(function) && count >= least_operands(function);
}

std::optional<std::size_t> most_results(const FunctionSchema& function) {
  std::size_t count = function.returns().size();
  for (const ArgumentSchema& one : function.returns()) {
    if (one.is_list) return std::nullopt;
  }
  for (const ArgumentSchema& one : function.arguments()) {
    if (one.alias && one.alias->writes) {
      if (one.is_list) return std::nullopt;
      ++count;
    }
  }
  return function.returns().empty() ? std::max<std::size_t>(count, 1) : count;
}

bool may_have_results(const FunctionSchema& function, std::size_t count) {
  const auto most = most_results(function);
  if (!most) return true;
  // A functional form may lack written arguments that are returned too.
  const bool is_exact = !function.is_mutating() && !function.returns().empty();
  return count <= *most && (!is_exact || count == *most);
}

}  // namespace shardprop

// `WordNeeds` lists the arguments that an operator must declare so that its rule may
// use a word (rule_words.h), because the word may read them. They are the arguments
// without default that all operators of this library with that word declare.
//
//   gather(dim)   needs `int dim`, `Tensor index`, and `Tensor self` as first tensor
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/ops/function_schema.h>
#include <shardprop/ops/op_definition.h>

#include "ops/names/rule_names.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

struct NeededArgument {
  ArgumentSchema argument;
  // The number of tensors and lists of tensors before it, if it is one and this
  // number is the same for all operators; else kAnyPlace.
  static constexpr std::size_t kAnyPlace = static_cast<std::size_t>(-1);
  std::size_t place = kAnyPlace;
};

struct WordNeeds {
  std::string word;  // "gather(dim)"; for sizes and dtypes "arange()"
  // "form", "modifier", "check", "dtype", "strides" or "size".
  std::string_view kind;
  std::vector<NeededArgument> arguments;
  std::size_t tensors = 0;             // at least; tensors and lists of tensors
  std::size_t results = 0;             // at least
  std::vector<std::string> operators;  // of this library, sorted
};

// Returns all words that rows of the library use, sorted by kind and word.
const std::vector<WordNeeds>& word_needs();

// Returns an error if the rule uses a word whose needs the operator does not declare.
// Error: kInvalidArgument, which names the column of the word in the text that `names`
// is of, unless it is null.
Result<void> check_words(const OpDefinition& rule,
                         const FunctionSchema& function,
                         const RuleNames* names = nullptr);

// Returns whether the rule uses a word.
bool uses_words(const OpDefinition& rule);

}  // namespace shardprop

// `RuleWords` is the vocabulary of forms, modifiers, dtypes, strides and sizes that
// rules may use beside those of the rule language itself. Each word has one meaning,
// a function of src/ops/forms or src/ops/definitions:
//
//   gather(dim)             a form
//   .lengths_only()         a modifier
//   .typed(arange())        a dtype
//   .strided(images)        the strides of results
//   nc{h}->nc{x:pooled()}   a size
//
// A word relies on the arguments that the operators of its rows have. A rule for
// another operator may use it if the operator declares them too (word_needs.h).
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/ops/op_definition.h>

#include "ops/forms/bound_notation.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

class RuleWords {
 public:
  // Adds a form by its text, such as "gather(dim)". Precondition of these
  // functions: the vocabulary has no such word.
  void form(OpDefinition form);
  // `text` is such as "lengths_only()" or "sides(left)".
  void modifier(std::string text, OpDefinition::Refine refine);
  // Like modifier(), for conditions on operands and arguments.
  void check(std::string text, OpDefinition::Check check);
  void dtype(std::string word, OpDefinition::TypeOf type);
  void strides(std::string word, OpDefinition::StridesOf strides);
  void size(std::string word, SizeOf size);

  // Return null for a text that is no word.
  const OpDefinition* find_form(std::string_view text) const;
  const OpDefinition::Refine* find_modifier(std::string_view text) const;
  const OpDefinition::Check* find_check(std::string_view text) const;
  const OpDefinition::TypeOf* find_dtype(std::string_view word) const;
  const OpDefinition::StridesOf* find_strides(std::string_view word) const;
  const SizeOf* find_size(std::string_view word) const;

  // Returns the texts of all words that are forms, sorted.
  std::vector<std::string> forms() const;

 private:
  template <class Meaning>
  using Words = std::map<std::string, Meaning, std::less<>>;
  Words<OpDefinition> forms_;
  Words<OpDefinition::Refine> modifiers_;
  Words<OpDefinition::Check> checks_;
  Words<OpDefinition::TypeOf> dtypes_;
  Words<OpDefinition::StridesOf> strides_;
  Words<SizeOf> sizes_;
};

// Returns the vocabulary, which is made at the first call.
const RuleWords& rule_words();

// Reads the text of a row of this library. Like parse_definition(), but a check has no
// result: pointwise(0).
Result<OpDefinition> parse_row(std::string_view text);

// Returns the form with this text. Precondition: it is a word.
OpDefinition form(std::string_view text);

}  // namespace shardprop

// `RuleNames` lists the names in a rule text with their columns: arguments and results
// of the operator, factors of the notation, words, and programs.
//
//   names_in_rule("mk,kn->mn.linear_in(x)")->names
//     {"x", column 21, NameKind::kTensors, "linear_in"}
//
// A reader of rules adds each name when it reads it, and compare_names() compares all of
// them with the declaration of the operator. No other place resolves names.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/ops/function_schema.h>
#include <shardprop/ops/notation.h>
#include <shardprop/ops/op_library.h>

#include "ops/program/program_text.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

// `NameKind` is the kind of thing that a name in a rule may refer to.
enum class NameKind : std::uint8_t {
  kNone,            // the word takes no name
  kArgument,        // any argument
  kTensor,          // a tensor
  kTypeOf,          // a tensor, in a place where a dtype is expected
  kTensors,         // a tensor or a list of tensors
  kTensorOrNumber,  // a tensor or a number
  kInteger,
  kIntegers,   // a list of integers
  kDims,       // an integer or a list of integers
  kNumber,     // an integer, a float or a Scalar
  kFlag,       // a bool
  kText,       // a str
  kCondition,  // true or false, or given or not: a bool or an optional argument
  kCompared,   // compared with a word or an integer: a str, an int or a Scalar
  kDType,
  kFactor,  // a factor of an operand, by its first letter
};

struct RuleNames {
  struct Name {
    std::string name;
    std::size_t at = 0;  // column, from 0
    NameKind kind = NameKind::kArgument;
    std::string word;  // "passes"
    // The text does not have the name; the word reads this argument.
    bool is_implied = false;
    // The word or integer with which a condition compares the argument, or the index of
    // the list element that is read; empty without them.
    std::string value = {};
    std::size_t value_at = 0;
  };
  // `Count` is a number of results or operands that the text states.
  struct Count {
    enum class Of : std::uint8_t {
      kResults,      // all results of the operator
      kSomeResults,  // at most as many as the operator has
      kOperands,     // at most as many tensors as the operator has
    };
    std::size_t count = 0;
    std::size_t at = 0;
    Of of = Of::kResults;
    std::string word;
  };
  struct Word {
    std::string text;  // "gather(dim)"
    std::size_t at = 0;
  };
  struct Program {
    ProgramText text;
    bool is_per_rank = false;
  };
  // `Alternative` is a notation with the columns of its terms.
  struct Alternative {
    Notation notation;
    std::vector<std::size_t> inputs;
    std::size_t arrow = 0;
    std::vector<std::size_t> outputs;
  };

  std::string form;  // "solve", "pointwise"; empty if the form is a notation
  std::vector<Name> names;
  std::vector<Count> counts;
  std::vector<Word> words;
  std::vector<Program> programs;
  std::vector<Alternative> alternatives;
};

// Errors, which name the column: those of parse_rule().
Result<RuleNames> names_in_rule(std::string_view text);

using Overloads = std::vector<std::shared_ptr<const FunctionSchema>>;

// Returns the names of the row of our own that the library has for the operator; none
// without such a row.
RuleNames names_of_row(const OpLibrary& library, const Overloads& overloads);

// Returns "`a`, `b` or `c`".
std::string either_of(const std::vector<std::string>& names);

}  // namespace shardprop

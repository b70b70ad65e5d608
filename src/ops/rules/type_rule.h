// `TypeRule` gives the dtype of each result of a call, as an expression:
//
//   first                        the dtype of the first operand
//   given(dtype,sum(first))      argument `dtype`, else that of a sum
//   first,i64                    a value, and its index
//
// The words of the language are:
//   f32, i64, ...                that dtype
//   first, weight                the dtype of the first operand; of an argument
//   promoted                     PyTorch's promotion of all operands
//   promote(x,y)                 the promotion of two dtypes, without ranks
//   floating(x)                  integers become f32
//   sum(x)                       integers and bools become i64
//   real(x), complex(x)          the dtype of the real part; of a complex number
//   given(arg,x)                 the dtype argument `arg`, else x
//   if(flag,x,y)                 x if the argument is true, else y
//   alike(x,y)                   x; both must be equal
//   same                         the dtype that all operands must have
//   no_bools(x), no_integers(x)  x, which must not be bool; nor integral
//   only_bool(x), half(x)        x, which must be bool; of 2 bytes
//   only_floating(x)             x, which must be floating
//   truth(x)                     bool, or u8 of u8
//   stated(arg,x,y)              x if the argument is given, else y
//   not_bool(arg,x)              x; the tensor or number `arg` must not be bool
//   scaled(arg,x)                x; the number `arg` must be of its kind
//   widened(arg,x)               the dtype argument: x, or f32 if x is a half
//   addend(arg,x)                x, which the tensor `arg` must have if given
//   arange()                     that of a word (rule_words.h)
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/placement/dtype.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

class OpCall;
struct RuleNames;

class TypeRule {
 public:
  // Error: kInvalidArgument, which names the column. `from` is the column, from 0, at
  // which the text begins in a longer one. Adds the names in the text to `names`,
  // unless it is null.
  static Result<TypeRule> parse(std::string_view text, std::size_t from = 0,
                                RuleNames* names = nullptr);
  // Returns the dtype of a result. Results beyond the last expression have the
  // dtype of the last one. An unfit call causes a CallError.
  DType of(const OpCall& call, std::size_t result) const;
  // Returns whether the rule uses a word of rule_words.h.
  bool has_word() const;
  friend std::string to_string(const TypeRule& rule);

  // `Node` is one word, with its operands at these indices.
  struct Node {
    enum class Kind : std::uint8_t {
      kDType,
      kFirst,
      kArgument,
      kPromoted,
      kPromote,
      kFloating,
      kSum,
      kReal,
      kComplex,
      kGiven,
      kIf,
      kAlike,
      kSame,
      kNoBools,
      kNoIntegers,
      kOnlyBool,
      kOnlyFloating,
      kHalf,
      kTruth,
      kStated,
      kScaled,
      kNotBool,
      kWidened,
      kAddend,
      kWord,
    };
    Kind kind = Kind::kFirst;
    DType dtype = DType::kF32;  // of kDType
    std::string argument = {};  // of kArgument, kGiven, kIf; kWord
    std::vector<std::size_t> operands = {};
  };

 private:
  friend class TypeRuleReader;
  DType eval(const OpCall& call, const Node& node, std::size_t result) const;
  // Evaluates the words that test a dtype or an argument.
  DType checked(const OpCall& call, const Node& node, std::size_t result) const;
  std::string text(const Node& node) const;
  // Returns the argument whose dtype the node is, for messages: "self". If there is
  // none, returns its text: "promoted".
  std::string name_of(const OpCall& call, const Node& node) const;

  std::vector<Node> nodes_;
  std::vector<std::size_t> results_;  // the root of each result
};

// Returns true for integers and bools, whose sums are i64.
bool counts(DType dtype);
// Returns the dtype of the real part.
DType real_dtype(DType dtype);
// Returns the dtype of complex numbers with parts of this dtype.
DType complex_dtype(DType dtype);

}  // namespace shardprop

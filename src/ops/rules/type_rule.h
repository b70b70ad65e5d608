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

class TypeRule {
 public:
  // Error: kInvalidArgument, which names the column.
  static Result<TypeRule> parse(std::string_view text);
  // Returns the dtype of a result. Results beyond the last expression have the
  // dtype of the last one. An unfit call causes a CallError.
  DType of(const OpCall& call, std::size_t result) const;
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
    };
    Kind kind = Kind::kFirst;
    DType dtype = DType::kF32;  // of kDType
    std::string argument = {};  // of kArgument, kGiven and kIf
    std::vector<std::size_t> operands = {};
  };

 private:
  friend class TypeRuleReader;
  DType eval(const OpCall& call, const Node& node) const;
  std::string text(const Node& node) const;

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

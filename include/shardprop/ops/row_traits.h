// `RowTraits` are properties of an operator definition that leave its index
// space unchanged: how the operator draws random numbers, which values its
// arguments may hold, and in which memory order a rank's operands must be.
//
// The row of aten.randn states the distribution kNormal, and that of aten.log
// that `self` is positive (OpDefinition::traits()).
#pragma once

#include <shardprop/ops/op_schema.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

// `Distribution` is the distribution of the elements of the first result. Each
// element is sampled from the numbers at its position in the full tensor
// (program/random_bits.h).
enum class Distribution : std::uint8_t {
  kNotStated,  // or no numbers are sampled
  kUnit,       // from 0 to 1, in the dtype of the result
  kUniform,    // `from`, `to`
  kNormal,     // `mean`, `std`: numbers or tensors, or neither
  kLogNormal,
  kExponential,          // `lambd`
  kCauchy,               // `median`, `sigma`
  kGeometric,            // `p`
  kIntegers,             // `low`, `high`
  kBernoulli,            // `p`, a number or a tensor, or the first operand
  kPermutation,          // permutes all elements
  kDropout,              // `p`, `train`: kept values and their mask
  kFeatureDropout,       // drops full channels
  kAlphaDropout,         // drops to the minimum of SELU
  kFeatureAlphaDropout,  // drops full channels to that minimum
  kAttention,            // drops weights inside the kernel
  kAttentionBackward,    // the numbers of its forward
  kPoisson,              // the rate determines how many numbers
  kMultinomial,          // samples from each row
};
std::string_view to_string(Distribution distribution);
std::optional<Distribution> distribution_named(std::string_view text);

// `IndexBound` is the exclusive upper bound of integers that are indices.
enum class IndexBound : std::uint8_t {
  kNone,
  kDim,        // the size of the dim of self that `dim` names
  kListedDim,  // the dim of self at the operand's position in `indices`
  kElements,   // the number of elements of self
  kRows,       // the number of rows of `weight`
  kClasses,    // the second dim of self, or its only one
  kArgument,   // an integer argument
};

// `ArgumentDomain` is the set of values that a tensor argument may hold. A
// check samples values from it.
struct ArgumentDomain {
  std::string argument;
  IndexBound below = IndexBound::kNone;  // integers are in [0, below)
  std::string bound_argument = {};       // of kArgument
  bool positive = false;                 // for logarithms
  bool nonzero = false;                  // for divisors
};
// Returns the upper bound for operand `operand` of the call.
// Precondition: the domain has one.
std::int64_t index_bound(const ArgumentDomain& domain, const OpSchema& op,
                         std::size_t operand);
// Returns the second argument of `.below(indices,rows)`.
std::string bound_text(const ArgumentDomain& domain);
// Sets the bound of that text.
void set_bound(ArgumentDomain& domain, std::string_view text);

// `OperandOrder` is the memory order that operands must have. PyTorch's kernels
// depend on it, and so do calls that record strides. Without it, a rank's
// tensor may have another order than the full tensor.
enum class OperandOrder : std::uint8_t {
  kAny,
  kAsWhole,    // the dim order of the full tensor
  kDenseRows,  // the last dim has stride 1
};

struct RowTraits {
  Distribution distribution = Distribution::kNotStated;
  std::vector<ArgumentDomain> domains;
  OperandOrder order = OperandOrder::kAny;
  // The arguments of which each element of the first result is one element. An
  // empty list means all of them. A requirement on the values of the result
  // then applies to these arguments.
  std::optional<std::vector<std::string>> selected;

  bool selects_from(std::string_view argument) const;
};

}  // namespace shardprop

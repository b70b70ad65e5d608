// This header adds properties of an operator definition to its index space.
// They describe how it samples random numbers, which values its arguments may
// hold, and where their elements go. A trait is a refinement that leaves the
// index space unchanged:
//
//   f.add("log", pointwise().floating().refine("", positive("self")));
//   f.add("randn", factory("size").random().refine("", draws(kNormal)));
//   distribution(row.definition)      kNormal
#pragma once

#include <shardprop/ops/op_definition.h>

#include <cstddef>
#include <cstdint>
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
OpDefinition::Refine draws(Distribution distribution);
Distribution distribution(const OpDefinition& row);

// `ArgumentDomain` is the set of values that a tensor argument may hold. A
// check samples values from it.
struct ArgumentDomain {
  // Returns the bound for operand `operand` of the call.
  using SizeOf = std::int64_t (*)(const OpSchema& op, std::size_t operand);
  std::string argument;
  SizeOf below = nullptr;  // integers in [0, below); null: any
  bool positive = false;
  bool nonzero = false;
};
// Declares that the integers of the argument are indices into something of that
// size.
OpDefinition::Refine below(std::string_view argument,
                           ArgumentDomain::SizeOf size);
OpDefinition::Refine positive(std::string_view argument);  // for logarithms
OpDefinition::Refine nonzero(std::string_view argument);   // for divisors
std::vector<ArgumentDomain> domains(const OpDefinition& row);

// `OperandOrder` is the memory order that operands must have. PyTorch's kernels
// depend on it, and so do calls that record strides. Without it, a rank's
// tensor may have another order than the full tensor.
enum class OperandOrder : std::uint8_t {
  kAny,
  kAsWhole,    // the dim order of the full tensor
  kDenseRows,  // the last dim has stride 1
};
// Returns the definition with this property.
OpDefinition in_order(OpDefinition row);       // kAsWhole
OpDefinition in_dense_rows(OpDefinition row);  // kDenseRows
OperandOrder operand_order(const OpDefinition& row);

// Declares that every element of the first result is one element of these
// arguments, or of any argument without names. A requirement on the values of
// the result then applies to these arguments. passes() implies it.
OpDefinition::Refine selects(std::vector<std::string> arguments = {});
bool selects_from(const OpDefinition& row, std::string_view argument);

}  // namespace shardprop

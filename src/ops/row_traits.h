// What a row says beside its index space: how it draws, what its arguments may
// hold, and where their elements go. A trait is a refinement that leaves the
// index space alone:
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

// How the elements of the first result are drawn, each from the numbers at its
// own place in the whole tensor (program/random_bits.h).
enum class Distribution : std::uint8_t {
  kNotStated,  // or nothing is drawn
  kUnit,       // from 0 to 1, in the dtype of the result
  kUniform,    // `from`, `to`
  kNormal,     // `mean`, `std`: numbers or tensors, or neither
  kLogNormal,
  kExponential,          // `lambd`
  kCauchy,               // `median`, `sigma`
  kGeometric,            // `p`
  kIntegers,             // `low`, `high`
  kBernoulli,            // `p`, a number or a tensor, or the first operand
  kPermutation,          // of all elements
  kDropout,              // `p`, `train`: what is kept, and which that is
  kFeatureDropout,       // whole channels
  kAlphaDropout,         // towards the least value of SELU
  kFeatureAlphaDropout,  // both
  kAttention,            // its weights, inside the kernel
  kAttentionBackward,    // what its forward drew
  kPoisson,              // as many numbers as the rate asks for
  kMultinomial,          // from rows
};
OpDefinition::Refine draws(Distribution distribution);
Distribution distribution(const OpDefinition& row);

// What a tensor argument may hold, for values that are drawn for a check.
struct ArgumentDomain {
  // Of operand `operand` of the call.
  using SizeOf = std::int64_t (*)(const OpSchema& op, std::size_t operand);
  std::string argument;
  SizeOf below = nullptr;  // of integers: 0 and more, below that; none: any
  bool positive = false;
  bool nonzero = false;
};
// Integers are places in something of that size.
OpDefinition::Refine below(std::string_view argument,
                           ArgumentDomain::SizeOf size);
OpDefinition::Refine positive(std::string_view argument);  // of a logarithm
OpDefinition::Refine nonzero(std::string_view argument);   // of a divisor
std::vector<ArgumentDomain> domains(const OpDefinition& row);

// How operands have to lie in memory, where PyTorch's kernels, or calls that were
// written down beside them, depend on it: the ranks' copies may lie otherwise
// than the whole tensors do.
enum class OperandOrder : std::uint8_t {
  kAny,
  kAsWhole,    // in the order of dims that the whole tensor has
  kDenseRows,  // the elements of the last dim side by side
};
// The row with that said.
OpDefinition in_order(OpDefinition row);       // kAsWhole
OpDefinition in_dense_rows(OpDefinition row);  // kDenseRows
OperandOrder operand_order(const OpDefinition& row);

// Every element of the first result is one element of these arguments; no
// names: of any. What a user of the result asks, it asks of them. passes() says
// so, too.
OpDefinition::Refine selects(std::vector<std::string> arguments = {});
bool selects_from(const OpDefinition& row, std::string_view argument);

}  // namespace shardprop

// Argument: one argument of an operator applied, tensors by position.
//
// Tensors stand as TensorArg, an index into the operand list of the OpSchema;
// everything else as itself. A symbolic size stands as its hint.
#pragma once

#include <shardprop/placement/dtype.h>

#include <complex>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace shardprop {

struct NoneArg {
  friend bool operator==(const NoneArg&, const NoneArg&) = default;
};

// Index of a tensor operand; kNone where an optional tensor is absent.
struct TensorArg {
  static constexpr std::int32_t kNone = -1;
  std::int32_t operand = kNone;
  friend bool operator==(const TensorArg&, const TensorArg&) = default;
};

// Memory format, layout, device or anything else that has a name and no
// influence on shardings ("contiguous_format", "strided", "cuda:0").
struct NamedArg {
  std::string name;
  friend bool operator==(const NamedArg&, const NamedArg&) = default;
};

using Argument = std::variant<NoneArg, bool, std::int64_t, double,
                              std::complex<double>, std::string, DType,
                              NamedArg, TensorArg, std::vector<TensorArg>,
                              std::vector<std::int64_t>, std::vector<double>,
                              std::vector<bool>, std::vector<std::string>>;

}  // namespace shardprop

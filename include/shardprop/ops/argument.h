// `Argument` is one argument of an operator call, with tensors given by
// position.
//
// A tensor is a TensorArg, an index into the operand list of the OpSchema. Any
// other argument is its value. A symbolic size is represented by its hint.
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

// `TensorArg` is the index of a tensor operand; kNone if an optional tensor is
// absent.
struct TensorArg {
  static constexpr std::int32_t kNone = -1;
  std::int32_t operand = kNone;
  friend bool operator==(const TensorArg&, const TensorArg&) = default;
};

// `NamedArg` is a memory format, layout, device or other named value that does
// not influence shardings ("contiguous_format", "strided", "cuda:0").
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

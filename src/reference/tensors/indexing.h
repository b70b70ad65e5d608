// Helpers of operators that read and write at given indices.
#pragma once

#include "reference/call.h"
#include "reference/math/arithmetic.h"

#include <algorithm>
#include <type_traits>

namespace shardprop::reference {

// Returns the index from the front; throws CallError if it is out of range.
// With `from_end`, negative indices count from the end.
inline std::int64_t checked_index(std::int64_t at, std::int64_t size,
                                  bool from_end = false) {
  if (from_end && at < 0) at += size;
  require(at >= 0 && at < size, "an index is out of range");
  return at;
}

// Calls f(T{}), with T the type of the computation for elements of the dtype.
template <class F>
std::vector<Tensor> in_domain(DType dtype, F&& f) {
  switch (domain_of(dtype)) {
    case Domain::kReal:
      return f(double{});
    case Domain::kInteger:
      return f(std::int64_t{});
    case Domain::kComplex:
      break;
  }
  return f(Complex{});
}

// How a written value combines with the existing one.
enum class Combine : std::uint8_t {
  kReplace,
  kAdd,
  kMultiply,
  kMean,
  kMax,
  kMin
};

template <class T>
T combined(Combine how, T there, T value) {
  if constexpr (!std::is_same_v<T, Complex>) {
    if (how == Combine::kMax) {
      if constexpr (std::is_same_v<T, double>) return maximum(there, value);
      return std::max(there, value);
    }
    if (how == Combine::kMin) {
      if constexpr (std::is_same_v<T, double>) return minimum(there, value);
      return std::min(there, value);
    }
  }
  if constexpr (std::is_same_v<T, std::int64_t>) {
    if (how == Combine::kMultiply) return wrap_multiply(there, value);
    return how == Combine::kReplace ? value : wrap_add(there, value);
  } else {
    if (how == Combine::kMultiply) return there * value;
    return how == Combine::kReplace ? value : there + value;
  }
}

}  // namespace shardprop::reference

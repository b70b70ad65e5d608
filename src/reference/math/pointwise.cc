#include "reference/math/pointwise.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "base/index.h"

namespace shardprop::reference {
namespace {

// Returns a number that is given instead of a tensor: mul.Scalar(x, 2).
template <class T>
T number_argument(const Call& call, std::string_view name) {
  if (!call.has(name)) return T{};
  const Argument& argument = call.op().arg(name);
  if constexpr (std::is_same_v<T, Complex>) {
    if (const auto* c = std::get_if<Complex>(&argument)) return *c;
  }
  if constexpr (std::is_same_v<T, std::int64_t>) {
    if (const auto i = call.op().int_arg(name)) return *i;
  }
  return static_cast<T>(call.op().float_arg(name).value_or(0));
}

// Casts an operand to the dtype of the operation. The cast is exact if results
// are compared or are steps; else only f32 is distinguished from f64.
template <class T>
T as_operand(T value, DType common, bool compares) {
  if constexpr (std::is_same_v<T, double>) {
    if (compares) return rounded(value, common);
    return common == DType::kF64 ? value : rounded(value, DType::kF32);
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    switch (common) {
      case DType::kU8:
        return static_cast<std::uint8_t>(value);
      case DType::kI8:
        return static_cast<std::int8_t>(value);
      case DType::kI16:
        return static_cast<std::int16_t>(value);
      case DType::kI32:
        return static_cast<std::int32_t>(value);
      default:
        return value;
    }
  } else {
    return value;
  }
}

DType common_dtype(const Call& call) {
  const DType out = call.out().dtype();
  if (out != DType::kBool) {
    for (const Tensor& input : call.inputs()) {
      if (is_complex(input.dtype())) return input.dtype();
    }
    return out;
  }
  return promoted_dtype(call);
}

template <class T, class F>
std::vector<Tensor> run(const Call& call, const PointFunctions& row, F&& f,
                        DType common) {
  if (!f) call_error("it is not defined on these dtypes");
  const Dims& shape = call.out().shape();
  const bool compares = call.out().dtype() == DType::kBool;
  const auto points = static_cast<std::size_t>(call.out().numel());
  const std::size_t count = row.operands.size();
  std::vector<std::vector<T>> columns(count);
  std::vector<T> x(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (const Tensor* tensor = call.optional_value(row.operands[i])) {
      columns[i] = broadcast_values<T>(*tensor, shape);
      for (T& value : columns[i]) value = as_operand(value, common, compares);
    } else {
      x[i] = as_operand(number_argument<T>(call, row.operands[i]), common,
                        compares);
    }
  }
  std::vector<T> out(points);
  for (std::size_t p = 0; p < points; ++p) {
    for (std::size_t i = 0; i < count; ++i) {
      if (!columns[i].empty()) x[i] = columns[i][p];
    }
    out[p] = f(x.data());
  }
  return {call.made(out)};
}

}  // namespace

Domain domain_of(const Call& call) { return domain_of(common_dtype(call)); }

std::vector<Tensor> pointwise(const Call& call, const PointFunctions& row) {
  const DType common = common_dtype(call);
  switch (domain_of(common)) {
    case Domain::kInteger:
      if (row.integer) return run<std::int64_t>(call, row, row.integer, common);
      return run<double>(call, row, row.real, common);
    case Domain::kReal:
      return run<double>(call, row, row.real, common);
    case Domain::kComplex:
      break;
  }
  return run<Complex>(call, row, row.complex, common);
}

}  // namespace shardprop::reference

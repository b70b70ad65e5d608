// The operators that the example runs, on what one rank holds: plain loops over
// row-major f32.

#include "tensor.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

namespace eager {
namespace {

using shardprop::Argument;
using shardprop::Dims;
using shardprop::LocalTensor;
using shardprop::Result;

LocalTensor zeros(const Dims& sizes) {
  return LocalTensor::zeros(sizes, shardprop::DType::kF32).value();
}

// Where element i of a result of `sizes` lies in an operand that broadcasts.
std::int64_t place(std::int64_t i, const Dims& sizes, const LocalTensor& of) {
  std::int64_t at = 0;
  for (int d = static_cast<int>(sizes.size()); d-- > 0;) {
    const std::int64_t size = sizes[static_cast<std::size_t>(d)];
    const int own = d - static_cast<int>(sizes.size()) + of.rank();
    if (own >= 0 && of.size(own) != 1) {
      at += i % size * of.strides()[static_cast<std::size_t>(own)];
    }
    i /= size;
  }
  return at;
}

LocalTensor pointwise(const LocalTensor& a, const LocalTensor& b,
                      const std::function<float(float, float)>& f) {
  Dims sizes = a.rank() >= b.rank() ? a.sizes() : b.sizes();
  const LocalTensor& other = a.rank() >= b.rank() ? b : a;
  for (int d = 0; d < other.rank(); ++d) {
    auto& size = sizes[sizes.size() - static_cast<std::size_t>(other.rank()) +
                       static_cast<std::size_t>(d)];
    if (size == 1) size = other.size(d);
  }
  const LocalTensor out = zeros(sizes);
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    out.data_as<float>()[i] = f(a.data_as<float>()[place(i, sizes, a)],
                                b.data_as<float>()[place(i, sizes, b)]);
  }
  return out;
}

// [m,k] x [k,n], or a batch of them.
LocalTensor product(const LocalTensor& a, const LocalTensor& b) {
  const int r = a.rank();
  Dims sizes = a.sizes();
  sizes[sizes.size() - 1] = b.size(r - 1);
  const LocalTensor out = zeros(sizes);
  const std::int64_t m = a.size(r - 2);
  const std::int64_t k = a.size(r - 1);
  const std::int64_t n = b.size(r - 1);
  const std::int64_t batch = r == 3 ? a.size(0) : 1;
  const auto* x = a.data_as<float>();
  const auto* y = b.data_as<float>();
  auto* z = out.data_as<float>();
  for (std::int64_t s = 0; s < batch; ++s) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t l = 0; l < k; ++l) {
        for (std::int64_t j = 0; j < n; ++j) {
          z[(s * m + i) * n + j] +=
              x[(s * m + i) * k + l] * y[(s * k + l) * n + j];
        }
      }
    }
  }
  return out;
}

LocalTensor transposed(const LocalTensor& a, std::int64_t d0, std::int64_t d1) {
  const LocalTensor view =
      a.transpose(static_cast<int>(d0), static_cast<int>(d1));
  const LocalTensor out = zeros(view.sizes());
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    out.data_as<float>()[i] =
        view.data_as<float>()[place(i, view.sizes(), view)];
  }
  return out;
}

// Over the last dim, which stays with size 1.
LocalTensor reduced(const LocalTensor& a, float first,
                    const std::function<float(float, float)>& f) {
  Dims sizes = a.sizes();
  const std::int64_t last = sizes[sizes.size() - 1];
  sizes[sizes.size() - 1] = 1;
  const LocalTensor out = zeros(sizes);
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    float value = first;
    for (std::int64_t j = 0; j < last; ++j) {
      value = f(value, a.data_as<float>()[i * last + j]);
    }
    out.data_as<float>()[i] = value;
  }
  return out;
}

float number(const Argument& argument) {
  if (const auto* real = std::get_if<double>(&argument)) {
    return static_cast<float>(*real);
  }
  const auto* whole = std::get_if<std::int64_t>(&argument);
  return whole == nullptr ? 0 : static_cast<float>(*whole);
}

}  // namespace

Result<LocalTensor> run_locally(std::string_view op,
                                const std::vector<LocalTensor>& tensors,
                                const std::vector<Argument>& arguments) {
  const LocalTensor& a = tensors[0];
  if (op == "aten.mm.default" || op == "aten.bmm.default") {
    return product(a, tensors[1]);
  }
  if (op == "aten.transpose.int") {
    return transposed(a, std::get<std::int64_t>(arguments[1]),
                      std::get<std::int64_t>(arguments[2]));
  }
  if (op == "aten.view.default") {
    const auto& sizes = std::get<std::vector<std::int64_t>>(arguments[1]);
    return a.reshaped(Dims(sizes.begin(), sizes.end()));
  }
  if (op == "aten.exp.default") {
    return pointwise(a, a, [](float x, float) { return std::exp(x); });
  }
  if (op == "aten.amax.default") {
    return reduced(a, -INFINITY,
                   [](float x, float y) { return std::max(x, y); });
  }
  if (op == "aten.sum.dim_IntList") {
    return reduced(a, 0, std::plus<float>());
  }
  if (op == "aten.mul.Tensor" && tensors.size() == 1) {
    const float by = number(arguments[1]);
    return pointwise(a, a, [by](float x, float) { return x * by; });
  }
  if (op == "aten.mul.Tensor") {
    return pointwise(a, tensors[1], std::multiplies<float>());
  }
  if (op == "aten.div.Tensor") {
    return pointwise(a, tensors[1], std::divides<float>());
  }
  if (op == "aten.add.Tensor") {
    return pointwise(a, tensors[1], std::plus<float>());
  }
  if (op == "aten.sub.Tensor") {
    return pointwise(a, tensors[1], std::minus<float>());
  }
  if (op == "aten.sub_.Tensor") {
    const float alpha = number(arguments[2]);
    const LocalTensor made = pointwise(
        a, tensors[1], [alpha](float x, float y) { return x - alpha * y; });
    std::copy_n(made.data_as<float>(), made.numel(), a.data_as<float>());
    return a;
  }
  return shardprop::fail(shardprop::ErrorCode::kNoStrategy,
                         "this example does not run " + std::string(op));
}

}  // namespace eager

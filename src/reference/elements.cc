#include "reference/elements.h"

#include "reference/call.h"

#include "ops/op_call.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

namespace shardprop::reference {
namespace {

struct Half {
  std::uint16_t bits;
};
struct Brain {
  std::uint16_t bits;
};

double number(Half h) {
  const int exponent = (h.bits >> 10) & 31;
  const double fraction = h.bits & 1023;
  double value = 0;
  if (exponent == 31) {
    value = fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                          : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    value = fraction * 0x1p-24;
  } else {
    value = std::ldexp(1024 + fraction, exponent - 25);
  }
  return (h.bits & 0x8000) != 0 ? -value : value;
}

double number(Brain b) {
  return std::bit_cast<float>(std::uint32_t{b.bits} << 16);
}

Half half(double value) {
  const auto sign =
      static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const double size = std::fabs(value);
  std::uint16_t bits = 0;
  if (std::isnan(value)) {
    bits = 0x7e00;
  } else if (size >= 65520) {
    bits = 0x7c00;
  } else if (size < 0x1p-14) {
    bits = static_cast<std::uint16_t>(std::nearbyint(size * 0x1p24));
  } else {
    int exponent = 0;
    const double fraction = std::frexp(size, &exponent);  // [0.5, 1)
    // A carry increases the exponent, which is the correct rounding.
    bits = static_cast<std::uint16_t>(
        ((exponent + 14) << 10) +
        static_cast<int>(std::nearbyint(fraction * 2048)) - 1024);
  }
  return {static_cast<std::uint16_t>(bits | sign)};
}

Brain brain(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (std::isnan(value)) return {0x7fc0};
  return {
      static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
}

// Rounds towards zero. A value out of range becomes the least integer, as
// processors do it.
template <class I>
I truncated(double value) {
  constexpr auto kLeast = static_cast<double>(std::numeric_limits<I>::min());
  if (!(value > kLeast - 1 && value < -kLeast)) {
    return std::numeric_limits<I>::min();
  }
  return static_cast<I>(value);
}

// Converts between the stored type and the type of the computation.
template <class T, class S>
T widened(S stored) {
  if constexpr (std::is_same_v<S, Half> || std::is_same_v<S, Brain>) {
    return widened<T>(number(stored));
  } else if constexpr (std::is_same_v<S, std::complex<float>> ||
                       std::is_same_v<S, Complex>) {
    if constexpr (std::is_same_v<T, Complex>) {
      return Complex(stored.real(), stored.imag());
    } else {
      return widened<T>(static_cast<double>(stored.real()));
    }
  } else if constexpr (std::is_same_v<T, std::int64_t> &&
                       std::is_floating_point_v<S>) {
    return truncated<std::int64_t>(stored);
  } else if constexpr (std::is_same_v<T, Complex>) {
    return Complex(static_cast<double>(stored), 0);
  } else {
    return static_cast<T>(stored);
  }
}

template <class S, class T>
S narrowed(T value) {
  if constexpr (std::is_same_v<S, bool>) {
    return value != T{};
  } else if constexpr (std::is_same_v<S, std::complex<float>> ||
                       std::is_same_v<S, Complex>) {
    if constexpr (std::is_same_v<T, Complex>) {
      return S(static_cast<typename S::value_type>(value.real()),
               static_cast<typename S::value_type>(value.imag()));
    } else {
      return S(static_cast<typename S::value_type>(value), 0);
    }
  } else if constexpr (std::is_same_v<T, Complex>) {
    return narrowed<S>(value.real());
  } else if constexpr (std::is_same_v<S, Half>) {
    return half(static_cast<double>(value));
  } else if constexpr (std::is_same_v<S, Brain>) {
    return brain(static_cast<double>(value));
  } else if constexpr (std::is_integral_v<S> && std::is_same_v<T, double>) {
    // Narrow integers are converted through 32 bits, as in processors.
    constexpr bool kNarrow = sizeof(S) < 4 || std::is_same_v<S, std::int32_t>;
    using Through = std::conditional_t<kNarrow, std::int32_t, std::int64_t>;
    return static_cast<S>(truncated<Through>(value));
  } else {
    return static_cast<S>(value);
  }
}

template <class F>
void with_storage(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kBool:
      return f(bool{});
    case DType::kU8:
      return f(std::uint8_t{});
    case DType::kU16:
      return f(std::uint16_t{});
    case DType::kU32:
      return f(std::uint32_t{});
    case DType::kU64:
      return f(std::uint64_t{});
    case DType::kI8:
      return f(std::int8_t{});
    case DType::kI16:
      return f(std::int16_t{});
    case DType::kI32:
      return f(std::int32_t{});
    case DType::kI64:
      return f(std::int64_t{});
    case DType::kF16:
      return f(Half{});
    case DType::kBF16:
      return f(Brain{});
    case DType::kF32:
      return f(float{});
    case DType::kF64:
      return f(double{});
    case DType::kC64:
      return f(std::complex<float>{});
    case DType::kC128:
      return f(Complex{});
    default:
      throw NoKernel{"values in " + std::string(to_string(dtype))};
  }
}

}  // namespace

bool has_values(DType dtype) {
  return dtype != DType::kC32 && !(is_floating(dtype) && item_size(dtype) < 2);
}

Domain domain_of(DType dtype) {
  if (is_complex(dtype)) return Domain::kComplex;
  return is_floating(dtype) ? Domain::kReal : Domain::kInteger;
}

template <class T>
std::vector<T> values(const Tensor& tensor) {
  std::vector<T> out;
  out.reserve(static_cast<std::size_t>(tensor.numel()));
  with_storage(tensor.dtype(), [&](auto kind) {
    using S = decltype(kind);
    const auto* data = reinterpret_cast<const S*>(tensor.data());
    for_each_offset(tensor.shape(), tensor.strides(), [&](std::int64_t offset) {
      out.push_back(widened<T>(data[offset]));
    });
  });
  return out;
}

template <class T>
void write(const Tensor& to, const std::vector<T>& from) {
  with_storage(to.dtype(), [&](auto kind) {
    using S = decltype(kind);
    auto* data = reinterpret_cast<S*>(to.data());
    std::size_t next = 0;
    for_each_offset(to.shape(), to.strides(), [&](std::int64_t offset) {
      data[offset] = narrowed<S>(from[next++]);
    });
  });
}

template <class T>
Tensor tensor_of(const Dims& shape, DType dtype, const std::vector<T>& from) {
  Tensor out = Tensor::zeros(shape, dtype);
  if (static_cast<std::size_t>(out.numel()) != from.size()) {
    throw InternalError("the reference made another number of elements");
  }
  write(out, from);
  return out;
}

template std::vector<double> values(const Tensor&);
template std::vector<std::int64_t> values(const Tensor&);
template std::vector<Complex> values(const Tensor&);
template Tensor tensor_of(const Dims&, DType, const std::vector<double>&);
template Tensor tensor_of(const Dims&, DType, const std::vector<std::int64_t>&);
template Tensor tensor_of(const Dims&, DType, const std::vector<Complex>&);
template void write(const Tensor&, const std::vector<double>&);
template void write(const Tensor&, const std::vector<std::int64_t>&);
template void write(const Tensor&, const std::vector<Complex>&);

Tensor cast(const Tensor& tensor, DType dtype) {
  Tensor out = Tensor::zeros(tensor.shape(), dtype);
  copy_into(out, tensor);
  return out;
}

void copy_into(const Tensor& to, const Tensor& from) {
  switch (domain_of(from.dtype())) {
    case Domain::kReal:
      return write(to, values<double>(from));
    case Domain::kInteger:
      return write(to, values<std::int64_t>(from));
    case Domain::kComplex:
      return write(to, values<Complex>(from));
  }
}

Tensor contiguous(const Tensor& tensor) {
  return tensor.is_contiguous() ? tensor : cast(tensor, tensor.dtype());
}

Tensor broadcast_to(const Tensor& tensor, const Dims& shape) {
  const std::size_t rank = tensor.shape().size();
  require(rank <= shape.size(),
          "an operand has more dims than it spreads over");
  Dims strides(shape.size(), 0);
  const std::size_t lead = shape.size() - rank;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t size = tensor.shape()[d];
    if (size == 1) continue;
    require(size == shape[lead + d], "an operand does not broadcast");
    strides[lead + d] = tensor.strides()[d];
  }
  return tensor.seen_as(shape, std::move(strides));
}

double rounded(double value, DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return number(half(value));
    case DType::kBF16:
      return number(brain(value));
    case DType::kF32:
      return static_cast<double>(static_cast<float>(value));
    default:
      return value;
  }
}

}  // namespace shardprop::reference

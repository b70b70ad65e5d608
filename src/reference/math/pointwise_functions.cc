// Evaluates arithmetic, bit operations and the other functions of several
// numbers.

#include "reference/kernels.h"
#include "reference/math/arithmetic.h"
#include "reference/math/pointwise.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace shardprop::reference {
namespace {

using Real2 = double (*)(double, double);
using Whole2 = std::int64_t (*)(std::int64_t, std::int64_t);

// Returns a kernel of f, applied to the first two arguments, which are tensors
// or numbers.
void binary(Kernels& k, Names names, Real2 f, Whole2 whole = nullptr) {
  k.add(names, [=](const Call& call) {
    const auto& arguments = call.op().function->arguments();
    PointFunctions row{{arguments.at(0).name, arguments.at(1).name},
                       [f](const double* x) { return f(x[0], x[1]); }};
    if (whole != nullptr) {
      row.integer = [whole](const std::int64_t* x) {
        return whole(x[0], x[1]);
      };
    }
    return pointwise(call, row);
  });
}

// Evaluates a + alpha * b, with either sign and either order.
Kernel sum_of(double sign, bool swapped = false) {
  return [=](const Call& call) {
    const bool negative = sign < 0;
    const std::string_view a = swapped ? "other" : "self";
    const std::string_view b = swapped ? "self" : "other";
    return pointwise(
        call, {{a, b, "alpha"},
               [=](const double* x) { return x[0] + sign * x[2] * x[1]; },
               [=](const std::int64_t* x) {
                 const std::int64_t term = wrap_multiply(x[2], x[1]);
                 return negative ? wrap_subtract(x[0], term)
                                 : wrap_add(x[0], term);
               },
               [=](const Complex* x) { return x[0] + sign * x[2] * x[1]; }});
  };
}

std::vector<Tensor> divide(const Call& call) {
  const std::string_view mode = call.text("rounding_mode");
  PointFunctions row{{"self", "other"}};
  if (mode == "floor") {
    row.real = [](const double* x) { return floor_quotient(x[0], x[1]); };
    row.integer = [](const std::int64_t* x) {
      return floor_quotient(x[0], x[1]);
    };
  } else if (mode == "trunc") {
    row.real = [](const double* x) { return std::trunc(x[0] / x[1]); };
    row.integer = [](const std::int64_t* x) { return quotient(x[0], x[1]); };
  } else {
    row.real = [](const double* x) { return x[0] / x[1]; };
    // Only `prims` has this division; other divisions of integers give floats.
    row.integer = [](const std::int64_t* x) { return quotient(x[0], x[1]); };
    row.complex = [](const Complex* x) { return x[0] / x[1]; };
  }
  return pointwise(call, row);
}

std::vector<Tensor> multiply(const Call& call) {
  return pointwise(
      call, {{"self", "other"},
             [](const double* x) { return x[0] * x[1]; },
             [](const std::int64_t* x) { return wrap_multiply(x[0], x[1]); },
             [](const Complex* x) { return x[0] * x[1]; }});
}

std::vector<Tensor> raise(const Call& call) {
  return pointwise(call,
                   {{"self", "exponent"},
                    [](const double* x) { return std::pow(x[0], x[1]); },
                    [](const std::int64_t* x) { return power(x[0], x[1]); },
                    [](const Complex* x) { return std::pow(x[0], x[1]); }});
}

std::vector<Tensor> clamp(const Call& call) {
  const bool has_min =
      call.has("min") &&
      (call.optional_value("min") != nullptr || call.optional_number("min"));
  const bool has_max =
      call.has("max") &&
      (call.optional_value("max") != nullptr || call.optional_number("max"));
  return pointwise(call, {{"self", "min", "max"},
                          [=](const double* x) {
                            double y = has_min ? maximum(x[0], x[1]) : x[0];
                            return has_max ? minimum(y, x[2]) : y;
                          },
                          [=](const std::int64_t* x) {
                            std::int64_t y =
                                has_min ? std::max(x[0], x[1]) : x[0];
                            return has_max ? std::min(y, x[2]) : y;
                          }});
}

std::vector<Tensor> add_product(const Call& call) {
  return pointwise(
      call, {{"self", "tensor1", "tensor2", "value"},
             [](const double* x) { return x[0] + x[3] * x[1] * x[2]; },
             [](const std::int64_t* x) {
               return wrap_add(x[0],
                               wrap_multiply(x[3], wrap_multiply(x[1], x[2])));
             },
             [](const Complex* x) { return x[0] + x[3] * x[1] * x[2]; }});
}

std::vector<Tensor> add_quotient(const Call& call) {
  return pointwise(call,
                   {{"self", "tensor1", "tensor2", "value"},
                    [](const double* x) { return x[0] + x[3] * x[1] / x[2]; }});
}

std::vector<Tensor> interpolate(const Call& call) {
  return pointwise(call, {{"self", "end", "weight"}, [](const double* x) {
                            const double d = x[1] - x[0];
                            return x[2] < 0.5 ? x[0] + x[2] * d
                                              : x[1] - d * (1 - x[2]);
                          }});
}

double log_sum(double a, double b, double base) {
  if (std::isinf(a) && a == b) return a;
  const double top = maximum(a, b);
  return top + std::log1p(std::exp((minimum(a, b) - top) * base)) / base;
}

std::vector<Tensor> next_after(const Call& call) {
  const bool narrow = call.out().dtype() == DType::kF32;
  return pointwise(call, {{call.op().function->arguments().at(0).name,
                           call.op().function->arguments().at(1).name},
                          [=](const double* x) -> double {
                            if (!narrow) return std::nextafter(x[0], x[1]);
                            return std::nextafterf(static_cast<float>(x[0]),
                                                   static_cast<float>(x[1]));
                          }});
}

std::int64_t width_of(const Call& call) {
  return item_size(call.out().dtype()) * 8;
}

void add_bits(Kernels& k) {
  const auto bits = [&k](Names names, Whole2 f) {
    binary(k, names, nullptr, f);
  };
  bits({"bitwise_and.Scalar", "bitwise_and.Scalar_Tensor", "bitwise_and.Tensor",
        "prims::bitwise_and", "__and__.Scalar", "__and__.Tensor"},
       [](std::int64_t a, std::int64_t b) { return a & b; });
  bits({"bitwise_or.Scalar", "bitwise_or.Scalar_Tensor", "bitwise_or.Tensor",
        "prims::bitwise_or", "__or__.Scalar", "__or__.Tensor"},
       [](std::int64_t a, std::int64_t b) { return a | b; });
  bits({"bitwise_xor.Scalar", "bitwise_xor.Scalar_Tensor", "bitwise_xor.Tensor",
        "prims::bitwise_xor", "__xor__.Scalar", "__xor__.Tensor"},
       [](std::int64_t a, std::int64_t b) { return a ^ b; });
  bits({"gcd", "prims::gcd"}, [](std::int64_t a, std::int64_t b) {
    while (b != 0) a = std::exchange(b, a % b);
    return a < 0 ? -a : a;
  });
  bits({"lcm"}, [](std::int64_t a, std::int64_t b) -> std::int64_t {
    std::int64_t x = a;
    std::int64_t y = b;
    while (y != 0) x = std::exchange(y, x % y);
    return x == 0 ? 0 : std::abs(a / x * b);
  });
  k.add({"bitwise_left_shift.Scalar_Tensor", "bitwise_left_shift.Tensor",
         "bitwise_left_shift.Tensor_Scalar", "__lshift__.Scalar",
         "__lshift__.Tensor"},
        [](const Call& call) {
          const std::int64_t width = width_of(call);
          return pointwise(
              call, {{"self", "other"},
                     [](const double* x) { return x[0] * std::exp2(x[1]); },
                     [width](const std::int64_t* x) {
                       return x[1] < 0 || x[1] >= width
                                  ? 0
                                  : static_cast<std::int64_t>(
                                        static_cast<std::uint64_t>(x[0])
                                        << x[1]);
                     }});
        });
  k.add({"bitwise_right_shift.Scalar_Tensor", "bitwise_right_shift.Tensor",
         "bitwise_right_shift.Tensor_Scalar", "__rshift__.Scalar",
         "__rshift__.Tensor"},
        [](const Call& call) {
          const bool is_signed = call.out().dtype() != DType::kU8;
          const std::int64_t most = width_of(call) - (is_signed ? 1 : 0);
          return pointwise(
              call, {{"self", "other"},
                     [](const double* x) { return x[0] / std::exp2(x[1]); },
                     [most](const std::int64_t* x) {
                       const bool far = x[1] < 0 || x[1] >= most;
                       return x[0] >>
                              std::min<std::int64_t>(far ? most : x[1], 63);
                     }});
        });
}

// There is one weight, or one weight per channel (dim 1).
std::vector<Tensor> prelu(const Call& call) {
  const Tensor& self = call.value("self");
  Tensor weight = contiguous(call.value("weight"));
  if (weight.numel() != 1 && self.rank() >= 2) {
    Dims shape(self.shape().size(), 1);
    shape[1] = weight.numel();
    weight = weight.seen_as(shape, contiguous_strides(shape));
  }
  const auto slopes = broadcast_values<double>(weight, self.shape());
  std::vector<double> x = values<double>(self);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!(x[i] > 0)) x[i] *= slopes[i];
  }
  return {call.made(x)};
}

void add_pairs(Kernels& k) {
  binary(k, {"maximum", "prims::maximum", "max.other"}, maximum,
         [](std::int64_t a, std::int64_t b) { return std::max(a, b); });
  binary(k, {"minimum", "prims::minimum", "min.other"}, minimum,
         [](std::int64_t a, std::int64_t b) { return std::min(a, b); });
  binary(k, {"fmax", "prims::fmax"}, std::fmax,
         [](std::int64_t a, std::int64_t b) { return std::max(a, b); });
  binary(k, {"fmin", "prims::fmin"}, std::fmin,
         [](std::int64_t a, std::int64_t b) { return std::min(a, b); });
  binary(k,
         {"remainder.Scalar", "remainder.Scalar_Tensor", "remainder.Tensor",
          "prims::remainder"},
         modulo, modulo);
  binary(k, {"fmod.Scalar", "fmod.Tensor", "prims::fmod"}, std::fmod,
         [](std::int64_t a, std::int64_t b) {
           require(b != 0, "a division of an integer by zero");
           return b == -1 ? 0 : a % b;
         });
  binary(k, {"floor_divide", "floor_divide.Scalar"}, floor_quotient,
         floor_quotient);
  binary(k, {"atan2", "prims::atan2"}, std::atan2);
  binary(k, {"hypot", "prims::hypot"}, std::hypot);
  binary(k, {"copysign.Scalar", "copysign.Tensor"}, std::copysign);
  binary(k, {"ldexp.Tensor"},
         [](double a, double b) { return a * std::exp2(b); });
  binary(k, {"xlogy.Scalar_Other", "xlogy.Scalar_Self", "xlogy.Tensor"},
         [](double a, double b) {
           if (std::isnan(b)) return b;
           return a == 0 ? 0 : a * std::log(b);
         });
  binary(k,
         {"special_xlog1py", "special_xlog1py.other_scalar",
          "special_xlog1py.self_scalar"},
         [](double a, double b) {
           if (std::isnan(b)) return b;
           return a == 0 ? 0 : a * std::log1p(b);
         });
  binary(
      k, {"heaviside"},
      [](double a, double b) {
        return a == 0 ? b : static_cast<double>(a > 0);
      },
      [](std::int64_t a, std::int64_t b) {
        return a == 0 ? b : static_cast<std::int64_t>(a > 0);
      });
  binary(k, {"logaddexp"}, [](double a, double b) { return log_sum(a, b, 1); });
  binary(k, {"logaddexp2"},
         [](double a, double b) { return log_sum(a, b, std::numbers::ln2); });
  binary(
      k,
      {"special_zeta", "special_zeta.other_scalar", "special_zeta.self_scalar"},
      zeta);
  k.add({"nextafter", "prims::nextafter"}, next_after);
  k.add({"prelu"}, prelu);
}

}  // namespace

void add_pointwise(Kernels& k) {
  add_bits(k);
  add_pairs(k);
  k.add({"add.Scalar", "add.Tensor", "prims::add"}, sum_of(1));
  k.add({"sub.Scalar", "sub.Tensor", "prims::sub", "subtract.Scalar",
         "subtract.Tensor"},
        sum_of(-1));
  k.add({"rsub.Scalar", "rsub.Tensor"}, sum_of(-1, true));
  k.add({"mul.Scalar", "mul.Tensor", "prims::mul", "multiply.Scalar",
         "multiply.Tensor"},
        multiply);
  k.add({"div.Scalar", "div.Scalar_mode", "div.Tensor", "div.Tensor_mode",
         "prims::div", "divide.Scalar", "divide.Scalar_mode", "divide.Tensor",
         "divide.Tensor_mode", "true_divide.Scalar", "true_divide.Tensor"},
        divide);
  k.add({"pow.Scalar", "pow.Tensor_Scalar", "pow.Tensor_Tensor", "prims::pow",
         "float_power.Scalar", "float_power.Tensor_Scalar",
         "float_power.Tensor_Tensor"},
        raise);
  k.add({"clamp", "clamp.Tensor", "clip", "clip.Tensor", "clamp_min",
         "clamp_min.Tensor", "clamp_max", "clamp_max.Tensor"},
        clamp);
  k.add({"addcmul"}, add_product);
  k.add({"addcdiv"}, add_quotient);
  k.add({"lerp.Scalar", "lerp.Tensor"}, interpolate);
}

}  // namespace shardprop::reference

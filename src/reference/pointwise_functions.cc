// Arithmetic and the elementary functions.

#include "reference/arithmetic.h"
#include "reference/pointwise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

namespace shardprop::reference {
namespace {

using Names = std::initializer_list<std::string_view>;
using Real = double (*)(double);
using Real2 = double (*)(double, double);
using Whole = std::int64_t (*)(std::int64_t);
using Whole2 = std::int64_t (*)(std::int64_t, std::int64_t);
using Imaginary = Complex (*)(const Complex&);

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string_view first_name(const Call& call) {
  return call.op().function->arguments().front().name;
}

// f of the first argument.
void unary(Kernels& k, Names names, Real f, Imaginary complex = nullptr,
           Whole whole = nullptr) {
  for (const std::string_view name : names) {
    k[name] = [=](const Call& call) {
      PointFunctions row{{first_name(call)},
                         [f](const double* x) { return f(x[0]); }};
      if (whole != nullptr) {
        row.integer = [whole](const std::int64_t* x) { return whole(x[0]); };
      }
      if (complex != nullptr) {
        row.complex = [complex](const Complex* x) { return complex(x[0]); };
      }
      return pointwise(call, row);
    };
  }
}

// f of the first two arguments, tensors or numbers.
void binary(Kernels& k, Names names, Real2 f, Whole2 whole = nullptr) {
  for (const std::string_view name : names) {
    k[name] = [=](const Call& call) {
      const auto& arguments = call.op().function->arguments();
      PointFunctions row{{arguments.at(0).name, arguments.at(1).name},
                         [f](const double* x) { return f(x[0], x[1]); }};
      if (whole != nullptr) {
        row.integer = [whole](const std::int64_t* x) {
          return whole(x[0], x[1]);
        };
      }
      return pointwise(call, row);
    };
  }
}

// a + alpha * b, of either sign, in either order.
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

std::vector<Tensor> round(const Call& call) {
  const auto decimals =
      call.has("decimals") ? call.op().int_arg("decimals").value_or(0) : 0;
  const double scale = std::pow(10.0, static_cast<double>(std::abs(decimals)));
  return pointwise(call, {{"self"},
                          [=](const double* x) {
                            if (decimals == 0) return std::nearbyint(x[0]);
                            return decimals > 0
                                       ? std::nearbyint(x[0] * scale) / scale
                                       : std::nearbyint(x[0] / scale) * scale;
                          },
                          [](const std::int64_t* x) { return x[0]; }});
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

std::vector<Tensor> absolute(const Call& call) {
  const std::string_view self = first_name(call);
  if (domain_of(call) == Domain::kComplex) {
    return pointwise(call, {{self}, {}, {}, [](const Complex* x) {
                              return Complex(std::abs(x[0]), 0);
                            }});
  }
  return pointwise(call, {{self},
                          [](const double* x) { return std::fabs(x[0]); },
                          [](const std::int64_t* x) {
                            return x[0] < 0 ? wrap_subtract(0, x[0]) : x[0];
                          }});
}

void add_elementary(Kernels& k) {
  unary(k, {"exp"}, std::exp, std::exp<double>);
  unary(k, {"exp2"}, std::exp2);
  unary(k, {"expm1"}, std::expm1);
  unary(k, {"log"}, std::log, std::log<double>);
  unary(k, {"log2"}, std::log2);
  unary(k, {"log10"}, std::log10, std::log10<double>);
  unary(k, {"log1p"}, std::log1p);
  unary(k, {"sqrt"}, std::sqrt, std::sqrt<double>);
  unary(k, {"sin"}, std::sin, std::sin<double>);
  unary(k, {"cos"}, std::cos, std::cos<double>);
  unary(k, {"tan"}, std::tan, std::tan<double>);
  unary(k, {"asin"}, std::asin, std::asin<double>);
  unary(k, {"acos"}, std::acos, std::acos<double>);
  unary(k, {"atan"}, std::atan, std::atan<double>);
  unary(k, {"sinh"}, std::sinh, std::sinh<double>);
  unary(k, {"cosh"}, std::cosh, std::cosh<double>);
  unary(k, {"tanh"}, std::tanh, std::tanh<double>);
  unary(k, {"asinh"}, std::asinh, std::asinh<double>);
  unary(k, {"acosh"}, std::acosh, std::acosh<double>);
  unary(k, {"atanh"}, std::atanh, std::atanh<double>);
  unary(k, {"erf"}, std::erf);
  unary(k, {"erfc"}, std::erfc);
  unary(k, {"erfinv"}, erfinv);
  unary(k, {"lgamma"}, std::lgamma);
  unary(k, {"digamma"}, digamma);
  unary(k, {"sigmoid", "special_expit"}, sigmoid);
  unary(k, {"rsqrt"}, [](double x) { return 1 / std::sqrt(x); });
  unary(
      k, {"reciprocal"}, [](double x) { return 1 / x; },
      [](const Complex& x) { return 1.0 / x; });
  unary(k, {"deg2rad"}, [](double x) { return x * std::numbers::pi / 180; });
  unary(k, {"rad2deg"}, [](double x) { return x * 180 / std::numbers::pi; });
  unary(k, {"sinc"}, [](double x) {
    const double y = x * std::numbers::pi;
    return x == 0 ? 1 : std::sin(y) / y;
  });
}

std::int64_t same(std::int64_t x) { return x; }

void add_steps(Kernels& k) {
  unary(
      k, {"neg", "negative"}, [](double x) { return -x; },
      [](const Complex& x) { return -x; },
      [](std::int64_t x) { return wrap_subtract(0, x); });
  unary(
      k, {"square"}, [](double x) { return x * x; },
      [](const Complex& x) { return x * x; },
      [](std::int64_t x) { return wrap_multiply(x, x); });
  unary(k, {"floor"}, std::floor, nullptr, same);
  unary(k, {"ceil"}, std::ceil, nullptr, same);
  unary(k, {"trunc"}, std::trunc, nullptr, same);
  unary(k, {"frac"}, [](double x) { return x - std::trunc(x); });
  unary(
      k, {"sign", "sgn"},
      [](double x) { return static_cast<double>((x > 0) - (x < 0)); }, nullptr,
      [](std::int64_t x) { return std::int64_t{(x > 0) - (x < 0)}; });
  unary(
      k, {"conj_physical", "_conj_physical"}, [](double x) { return x; },
      [](const Complex& x) { return std::conj(x); }, same);
  k["round"] = round;
  k["abs"] = absolute;
  k["bitwise_not"] = [](const Call& call) {
    const bool truth = call.out().dtype() == DType::kBool;
    return pointwise(
        call,
        {{first_name(call)}, {}, [=](const std::int64_t* x) -> std::int64_t {
           return truth ? static_cast<std::int64_t>(x[0] == 0) : ~x[0];
         }});
  };
  k["angle"] = [](const Call& call) {
    return pointwise(
        call, {{"self"},
               [](const double* x) {
                 if (std::isnan(x[0])) return x[0];
                 return x[0] < 0 ? std::numbers::pi : 0.0;
               },
               {},
               [](const Complex* x) { return Complex(std::arg(x[0]), 0); }});
  };
  k["polygamma"] = [](const Call& call) {
    const std::int64_t n = call.integer("n");
    return pointwise(
        call, {{"self"}, [n](const double* x) { return polygamma(n, x[0]); }});
  };
  k["mvlgamma"] = [](const Call& call) {
    const std::int64_t p = call.integer("p");
    return pointwise(call,
                     {{"self"}, [p](const double* x) {
                        double sum = static_cast<double>(p * (p - 1)) / 4 *
                                     std::log(std::numbers::pi);
                        for (std::int64_t i = 0; i < p; ++i) {
                          sum += std::lgamma(x[0] - static_cast<double>(i) / 2);
                        }
                        return sum;
                      }});
  };
  k["frexp"] = [](const Call& call) {
    std::vector<double> mantissas;
    std::vector<std::int64_t> exponents;
    for (const double x : values<double>(call.first_value())) {
      int exponent = 0;
      mantissas.push_back(std::frexp(x, &exponent));
      exponents.push_back(std::isfinite(x) ? exponent : 0);
    }
    return std::vector<Tensor>{call.made(mantissas), call.made(exponents, 1)};
  };
}

std::int64_t width_of(const Call& call) {
  return item_size(call.out().dtype()) * 8;
}

void add_bits(Kernels& k) {
  const auto bits = [&k](Names names, Whole2 f) {
    binary(k, names, nullptr, f);
  };
  bits({"bitwise_and", "__and__"},
       [](std::int64_t a, std::int64_t b) { return a & b; });
  bits({"bitwise_or", "__or__"},
       [](std::int64_t a, std::int64_t b) { return a | b; });
  bits({"bitwise_xor", "__xor__"},
       [](std::int64_t a, std::int64_t b) { return a ^ b; });
  bits({"gcd"}, [](std::int64_t a, std::int64_t b) {
    while (b != 0) a = std::exchange(b, a % b);
    return a < 0 ? -a : a;
  });
  bits({"lcm"}, [](std::int64_t a, std::int64_t b) -> std::int64_t {
    std::int64_t x = a;
    std::int64_t y = b;
    while (y != 0) x = std::exchange(y, x % y);
    return x == 0 ? 0 : std::abs(a / x * b);
  });
  for (const char* name : {"bitwise_left_shift", "__lshift__"}) {
    k[name] = [](const Call& call) {
      const std::int64_t width = width_of(call);
      return pointwise(
          call, {{"self", "other"},
                 [](const double* x) { return x[0] * std::exp2(x[1]); },
                 [width](const std::int64_t* x) {
                   return x[1] < 0 || x[1] >= width
                              ? 0
                              : static_cast<std::int64_t>(
                                    static_cast<std::uint64_t>(x[0]) << x[1]);
                 }});
    };
  }
  for (const char* name : {"bitwise_right_shift", "__rshift__"}) {
    k[name] = [](const Call& call) {
      const bool is_signed = call.out().dtype() != DType::kU8;
      const std::int64_t most = width_of(call) - (is_signed ? 1 : 0);
      return pointwise(
          call, {{"self", "other"},
                 [](const double* x) { return x[0] / std::exp2(x[1]); },
                 [most](const std::int64_t* x) {
                   const bool far = x[1] < 0 || x[1] >= most;
                   return x[0] >> std::min<std::int64_t>(far ? most : x[1], 63);
                 }});
    };
  }
}

void add_pairs(Kernels& k) {
  binary(k, {"maximum", "max.other"}, maximum,
         [](std::int64_t a, std::int64_t b) { return std::max(a, b); });
  binary(k, {"minimum", "min.other"}, minimum,
         [](std::int64_t a, std::int64_t b) { return std::min(a, b); });
  binary(k, {"fmax"}, std::fmax,
         [](std::int64_t a, std::int64_t b) { return std::max(a, b); });
  binary(k, {"fmin"}, std::fmin,
         [](std::int64_t a, std::int64_t b) { return std::min(a, b); });
  binary(k, {"remainder"}, modulo, modulo);
  binary(k, {"fmod"}, std::fmod, [](std::int64_t a, std::int64_t b) {
    require(b != 0, "a division of an integer by zero");
    return b == -1 ? 0 : a % b;
  });
  binary(k, {"floor_divide"}, floor_quotient, floor_quotient);
  binary(k, {"atan2"}, std::atan2);
  binary(k, {"hypot"}, std::hypot);
  binary(k, {"copysign"}, std::copysign);
  binary(k, {"ldexp"}, [](double a, double b) { return a * std::exp2(b); });
  binary(k, {"xlogy"}, [](double a, double b) {
    if (std::isnan(b)) return b;
    return a == 0 ? 0 : a * std::log(b);
  });
  binary(k, {"special_xlog1py"}, [](double a, double b) {
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
  binary(k, {"special_zeta"}, zeta);
  k["nextafter"] = next_after;
  k["prelu"] = [](const Call& call) {
    return pointwise(call, {{"self", "weight"}, [](const double* x) {
                              return x[0] > 0 ? x[0] : x[1] * x[0];
                            }});
  };
}

}  // namespace

void add_pointwise(Kernels& k) {
  add_elementary(k);
  add_steps(k);
  add_bits(k);
  add_pairs(k);
  k["add"] = sum_of(1);
  k["sub"] = k["subtract"] = sum_of(-1);
  k["rsub"] = sum_of(-1, true);
  k["mul"] = k["multiply"] = multiply;
  k["div"] = k["divide"] = k["true_divide"] = divide;
  k["pow"] = k["float_power"] = raise;
  k["clamp"] = k["clip"] = k["clamp_min"] = k["clamp_max"] = clamp;
  k["addcmul"] = add_product;
  k["addcdiv"] = add_quotient;
  k["lerp"] = interpolate;
}

}  // namespace shardprop::reference

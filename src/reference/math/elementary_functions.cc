// Evaluates the functions of one number: exponentials, trigonometry, steps.

#include "reference/kernels.h"
#include "reference/math/arithmetic.h"
#include "reference/math/pointwise.h"

#include <cmath>
#include <numbers>

namespace shardprop::reference {
namespace {

using Real = double (*)(double);
using Whole = std::int64_t (*)(std::int64_t);
using Imaginary = Complex (*)(const Complex&);

std::string_view first_name(const Call& call) {
  return call.op().function->arguments().front().name;
}

// Returns a kernel of f, applied to the first argument.
void unary(Kernels& k, Names names, Real f, Imaginary complex = nullptr,
           Whole whole = nullptr) {
  k.add(names, [=](const Call& call) {
    PointFunctions row{{first_name(call)},
                       [f](const double* x) { return f(x[0]); }};
    if (whole != nullptr) {
      row.integer = [whole](const std::int64_t* x) { return whole(x[0]); };
    }
    if (complex != nullptr) {
      row.complex = [complex](const Complex* x) { return complex(x[0]); };
    }
    return pointwise(call, row);
  });
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
  unary(k, {"exp", "prims::exp"}, std::exp, std::exp<double>);
  unary(k, {"exp2", "prims::exp2"}, std::exp2);
  unary(k, {"expm1", "prims::expm1"}, std::expm1);
  unary(k, {"log", "prims::log"}, std::log, std::log<double>);
  unary(k, {"log2", "prims::log2"}, std::log2);
  unary(k, {"log10", "prims::log10"}, std::log10, std::log10<double>);
  unary(k, {"log1p", "prims::log1p"}, std::log1p);
  unary(k, {"sqrt", "prims::sqrt"}, std::sqrt, std::sqrt<double>);
  unary(k, {"sin", "prims::sin"}, std::sin, std::sin<double>);
  unary(k, {"cos", "prims::cos"}, std::cos, std::cos<double>);
  unary(k, {"tan", "prims::tan"}, std::tan, std::tan<double>);
  unary(k, {"asin", "prims::asin"}, std::asin, std::asin<double>);
  unary(k, {"acos", "prims::acos"}, std::acos, std::acos<double>);
  unary(k, {"atan", "prims::atan"}, std::atan, std::atan<double>);
  unary(k, {"sinh", "prims::sinh"}, std::sinh, std::sinh<double>);
  unary(k, {"cosh", "prims::cosh"}, std::cosh, std::cosh<double>);
  unary(k, {"tanh", "prims::tanh"}, std::tanh, std::tanh<double>);
  unary(k, {"asinh", "prims::asinh"}, std::asinh, std::asinh<double>);
  unary(k, {"acosh", "prims::acosh"}, std::acosh, std::acosh<double>);
  unary(k, {"atanh", "prims::atanh"}, std::atanh, std::atanh<double>);
  unary(k, {"erf", "prims::erf"}, std::erf);
  unary(k, {"erfc", "prims::erfc"}, std::erfc);
  unary(k, {"erfinv"}, erfinv);
  unary(k, {"lgamma", "prims::lgamma"}, std::lgamma);
  unary(k, {"digamma", "prims::digamma"}, digamma);
  unary(k, {"sigmoid", "special_expit"}, sigmoid);
  unary(k, {"rsqrt", "prims::rsqrt"},
        [](double x) { return 1 / std::sqrt(x); });
  unary(
      k, {"reciprocal", "prims::reciprocal"}, [](double x) { return 1 / x; },
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
      k, {"neg", "prims::neg", "negative"}, [](double x) { return -x; },
      [](const Complex& x) { return -x; },
      [](std::int64_t x) { return wrap_subtract(0, x); });
  unary(
      k, {"square"}, [](double x) { return x * x; },
      [](const Complex& x) { return x * x; },
      [](std::int64_t x) { return wrap_multiply(x, x); });
  unary(k, {"floor", "prims::floor"}, std::floor, nullptr, same);
  unary(k, {"ceil", "prims::ceil"}, std::ceil, nullptr, same);
  unary(k, {"trunc", "prims::trunc"}, std::trunc, nullptr, same);
  unary(k, {"frac"}, [](double x) { return x - std::trunc(x); });
  unary(
      k, {"sign", "prims::sign", "sgn"},
      [](double x) { return static_cast<double>((x > 0) - (x < 0)); }, nullptr,
      [](std::int64_t x) { return std::int64_t{(x > 0) - (x < 0)}; });
  unary(
      k, {"conj_physical", "prims::conj_physical", "_conj_physical"},
      [](double x) { return x; }, [](const Complex& x) { return std::conj(x); },
      same);
  k.add({"round", "round.decimals", "prims::round"}, round);
  k.add({"abs", "prims::abs"}, absolute);
  k.add({"bitwise_not", "prims::bitwise_not"}, [](const Call& call) {
    const bool truth = call.out().dtype() == DType::kBool;
    return pointwise(
        call,
        {{first_name(call)}, {}, [=](const std::int64_t* x) -> std::int64_t {
           return truth ? static_cast<std::int64_t>(x[0] == 0) : ~x[0];
         }});
  });
  k.add({"angle"}, [](const Call& call) {
    return pointwise(
        call, {{"self"},
               [](const double* x) {
                 if (std::isnan(x[0])) return x[0];
                 return x[0] < 0 ? std::numbers::pi : 0.0;
               },
               {},
               [](const Complex* x) { return Complex(std::arg(x[0]), 0); }});
  });
  k.add({"polygamma"}, [](const Call& call) {
    const std::int64_t n = call.integer("n");
    return pointwise(
        call, {{"self"}, [n](const double* x) { return polygamma(n, x[0]); }});
  });
  k.add({"mvlgamma"}, [](const Call& call) {
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
  });
  k.add({"frexp.Tensor", "prims::frexp"}, [](const Call& call) {
    std::vector<double> mantissas;
    std::vector<std::int64_t> exponents;
    for (const double x : values<double>(call.first_value())) {
      int exponent = 0;
      mantissas.push_back(std::frexp(x, &exponent));
      exponents.push_back(std::isfinite(x) ? exponent : 0);
    }
    return std::vector<Tensor>{call.made(mantissas), call.made(exponents, 1)};
  });
}

}  // namespace

void add_elementary_functions(Kernels& k) {
  add_elementary(k);
  add_steps(k);
}

}  // namespace shardprop::reference

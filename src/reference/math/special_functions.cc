// Evaluates Bessel functions, orthogonal polynomials and other functions of
// torch.special.

#include "reference/kernels.h"
#include "reference/math/arithmetic.h"
#include "reference/math/pointwise.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace shardprop::reference {
namespace {

void function(Kernels& k, Names names, double (*f)(double)) {
  k.add(names, [f](const Call& call) {
    return pointwise(call, {{call.op().function->arguments().front().name},
                            [f](const double* x) { return f(x[0]); }});
  });
}

// Returns the factor of the modified Bessel functions at large x relative to
// exp(x) or exp(-x) over a square root. `sign` is the sign of the exponent.
double expansion(double order, double x, int sign) {
  const double m = 4 * order * order;
  const double z = -sign * 8 * x;
  return 1 + (m - 1) / z + (m - 1) * (m - 9) / (2 * z * z) +
         (m - 1) * (m - 9) * (m - 25) / (6 * z * z * z);
}

// Returns I times exp(-|x|), by its expansion if I is too large.
double scaled_bessel_i(double order, double x) {
  const double size = std::fabs(x);
  if (!(size > 300)) return std::cyl_bessel_i(order, size) * std::exp(-size);
  return expansion(order, size, 1) / std::sqrt(2 * std::numbers::pi * size);
}

double bessel_i(double order, double x) {
  const double size = std::fabs(x);
  if (!(size > 300)) return std::cyl_bessel_i(order, size);
  return scaled_bessel_i(order, size) * std::exp(size);
}

double bessel_k(double order, double x) {
  if (x == 0) return kInfinity;
  if (x < 0) return std::numeric_limits<double>::quiet_NaN();
  return x > 700 ? 0 : std::cyl_bessel_k(order, x);
}

// Returns K times exp(x), by its expansion if K is too small.
double scaled_bessel_k(double order, double x) {
  if (!(x > 300)) return bessel_k(order, x) * std::exp(x);
  return std::sqrt(std::numbers::pi / (2 * x)) * expansion(order, x, -1);
}

// Odd in x.
double odd(double value, double x) { return std::copysign(value, x); }

double bessel_y(double (*f)(double), double x) {
  if (x < 0) return std::numeric_limits<double>::quiet_NaN();
  return x == 0 ? -kInfinity : f(x);
}

double scaled_erfc(double x) {
  if (x < 25) return std::exp(x * x) * std::erfc(x);
  const double z = 1 / (2 * x * x);
  return (1 - z + 3 * z * z) / (x * std::sqrt(std::numbers::pi));
}

double entropy(double x) {
  if (std::isnan(x)) return x;
  if (x > 0) return -x * std::log(x);
  return x == 0 ? 0 : -kInfinity;
}

double log_normal(double x) {
  if (x < -1) {
    return std::log(scaled_erfc(-x / std::numbers::sqrt2) / 2) - x * x / 2;
  }
  return std::log1p(-std::erfc(x / std::numbers::sqrt2) / 2);
}

double normal_quantile(double p) {
  if (p == 0) return -kInfinity;
  if (p == 1) return kInfinity;
  return std::numbers::sqrt2 * erfinv(2 * p - 1);
}

}  // namespace

void add_special_functions(Kernels& k) {
  function(k, {"special_bessel_j0"}, ::j0);
  function(k, {"special_bessel_j1"}, ::j1);
  function(k, {"special_bessel_y0"},
           [](double x) { return bessel_y(::y0, x); });
  function(k, {"special_bessel_y1"},
           [](double x) { return bessel_y(::y1, x); });
  function(k, {"i0"}, [](double x) { return bessel_i(0, x); });
  function(k, {"special_modified_bessel_i0"},
           [](double x) { return bessel_i(0, x); });
  function(k, {"special_i0e"}, [](double x) { return scaled_bessel_i(0, x); });
  function(k, {"special_i1"}, [](double x) { return odd(bessel_i(1, x), x); });
  function(k, {"special_modified_bessel_i1"},
           [](double x) { return odd(bessel_i(1, x), x); });
  function(k, {"special_i1e"},
           [](double x) { return odd(scaled_bessel_i(1, x), x); });
  function(k, {"special_modified_bessel_k0"},
           [](double x) { return bessel_k(0, x); });
  function(k, {"special_modified_bessel_k1"},
           [](double x) { return bessel_k(1, x); });
  function(k, {"special_scaled_modified_bessel_k0"},
           [](double x) { return scaled_bessel_k(0, x); });
  function(k, {"special_scaled_modified_bessel_k1"},
           [](double x) { return scaled_bessel_k(1, x); });
  function(k, {"special_spherical_bessel_j0"},
           [](double x) { return x == 0 ? 1 : std::sin(x) / x; });
  function(k, {"special_erfcx"}, scaled_erfc);
  function(k, {"special_entr"}, entropy);
  function(k, {"special_log_ndtr"}, log_normal);
  function(k, {"special_ndtri"}, normal_quantile);
}

}  // namespace shardprop::reference

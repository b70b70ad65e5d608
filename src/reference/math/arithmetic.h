// Scalar arithmetic as PyTorch defines it, if C++ leaves it undefined or
// differs.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

namespace shardprop::reference {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Integers wrap.
constexpr std::int64_t wrap_add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) +
                                   static_cast<std::uint64_t>(b));
}
constexpr std::int64_t wrap_subtract(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) -
                                   static_cast<std::uint64_t>(b));
}
constexpr std::int64_t wrap_multiply(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) *
                                   static_cast<std::uint64_t>(b));
}

// Quotients of integers. They throw CallError if b is 0.
std::int64_t quotient(std::int64_t a, std::int64_t b);        // towards zero
std::int64_t floor_quotient(std::int64_t a, std::int64_t b);  // down
std::int64_t modulo(std::int64_t a, std::int64_t b);  // of the sign of b
double floor_quotient(double a, double b);
double modulo(double a, double b);

// Returns the power. With a negative exponent it is 1 or -1 for these bases,
// else 0.
std::int64_t power(std::int64_t base, std::int64_t exponent);

// Returns the larger (smaller) operand, or NaN if either is NaN.
inline double maximum(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? a + b : (a < b ? b : a);
}
inline double minimum(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? a + b : (b < a ? b : a);
}

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x, double beta = 1, double threshold = 20);
double gelu(double x, bool tanh);
// Returns the derivative of gelu at x.
double gelu_slope(double x, bool tanh);
double digamma(double x);
double erfinv(double x);
// Returns the Hurwitz zeta function.
double zeta(double s, double q);
double polygamma(std::int64_t order, double x);

}  // namespace shardprop::reference

#include "reference/math/arithmetic.h"

#include "ops/op_call.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace shardprop::reference {

using std::numbers::pi;

std::int64_t quotient(std::int64_t a, std::int64_t b) {
  require(b != 0, "a division of an integer by zero");
  return b == -1 ? wrap_subtract(0, a) : a / b;
}

std::int64_t modulo(std::int64_t a, std::int64_t b) {
  require(b != 0, "a division of an integer by zero");
  if (b == -1) return 0;
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  const std::int64_t down = quotient(a, b);
  const bool inexact = b != -1 && a % b != 0;
  return inexact && (a < 0) != (b < 0) ? down - 1 : down;
}

double modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (b < 0) != (rest < 0) ? rest + b : rest;
}

double floor_quotient(double a, double b) {
  if (b == 0) return a / b;
  const double rest = std::fmod(a, b);
  double div = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) div -= 1;
  if (div == 0) return std::copysign(0.0, a / b);
  const double down = std::floor(div);
  return div - down > 0.5 ? down + 1 : down;
}

std::int64_t power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    if (base == -1) return exponent % 2 != 0 ? -1 : 1;
    return 0;
  }
  std::int64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result = wrap_multiply(result, base);
    base = wrap_multiply(base, base);
  }
  return result;
}

double softplus(double x, double beta, double threshold) {
  return x * beta > threshold ? x : std::log1p(std::exp(x * beta)) / beta;
}

double gelu(double x, bool tanh) {
  if (!tanh) return x * 0.5 * (1 + std::erf(x / std::numbers::sqrt2));
  const double inner = std::sqrt(2 / pi) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + std::tanh(inner));
}

double gelu_slope(double x, bool tanh) {
  if (!tanh) {
    return 0.5 * (1 + std::erf(x / std::numbers::sqrt2)) +
           x * std::exp(-0.5 * x * x) / std::sqrt(2 * pi);
  }
  const double t = std::tanh(std::sqrt(2 / pi) * (x + 0.044715 * x * x * x));
  const double inner = std::sqrt(2 / pi) * (1 + 3 * 0.044715 * x * x);
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner;
}

double digamma(double x) {
  if (x == 0) return std::copysign(std::numeric_limits<double>::infinity(), -x);
  if (x < 0) {
    if (x == std::trunc(x)) return std::numeric_limits<double>::quiet_NaN();
    return digamma(1 - x) - pi / std::tan(pi * (x - std::trunc(x)));
  }
  double below = 0;
  for (; x < 10; ++x) below -= 1 / x;
  if (x > 1e17) return below + std::log(x);
  const double z = 1 / (x * x);
  const double series =
      z * (1.0 / 12 -
           z * (1.0 / 120 -
                z * (1.0 / 252 -
                     z * (1.0 / 240 - z * (5.0 / 660 - z * 691.0 / 32760)))));
  return below + std::log(x) - 0.5 / x - series;
}

double erfinv(double x) {
  if (!(x >= -1 && x <= 1)) return std::numeric_limits<double>::quiet_NaN();
  if (std::fabs(x) == 1) {
    return std::copysign(std::numeric_limits<double>::infinity(), x);
  }
  // Winitzki's approximation gives the start of Newton's iteration.
  const double a = 0.147;
  const double l = std::log1p(-x * x);
  const double b = 2 / (pi * a) + l / 2;
  double y = std::copysign(std::sqrt(std::sqrt(b * b - l / a) - b), x);
  for (int i = 0; i < 4; ++i) {
    y -= (std::erf(y) - x) / (2 / std::sqrt(pi) * std::exp(-y * y));
  }
  return y;
}

double zeta(double s, double q) {
  if (s == 1) return std::numeric_limits<double>::infinity();
  if (s < 1) return std::numeric_limits<double>::quiet_NaN();
  if (q <= 0) {
    if (q == std::floor(q)) return std::numeric_limits<double>::infinity();
    if (s != std::floor(s)) return std::numeric_limits<double>::quiet_NaN();
  }
  require(!(q < -1e6), "zeta is asked too far below 0");
  // The Euler-Maclaurin formula sums terms up to q + n and adds an integral.
  double sum = 0;
  int n = 0;
  for (; n < 12 || q + n < 9; ++n) {
    const double term = std::pow(q + n, -s);
    sum += term;
    if (std::fabs(term) < 1e-17 * std::fabs(sum)) return sum;
  }
  const double x = q + n;
  constexpr double kBernoulli[] = {1.0 / 6,   -1.0 / 30, 1.0 / 42,
                                   -1.0 / 30, 5.0 / 66,  -691.0 / 2730};
  sum += std::pow(x, 1 - s) / (s - 1) + 0.5 * std::pow(x, -s);
  double rising = s;
  double factorial = 2;
  for (int k = 0; k < 6; ++k) {
    sum += kBernoulli[k] * rising / factorial * std::pow(x, -s - 2 * k - 1);
    rising *= (s + 2 * k + 1) * (s + 2 * k + 2);
    factorial *= (2 * k + 3) * (2 * k + 4);
  }
  return sum;
}

double polygamma(std::int64_t order, double x) {
  if (order == 0) return digamma(x);
  if (order == 1 && x < 0.5) {
    if (std::fmod(x, 1) == 0) return std::numeric_limits<double>::infinity();
    // Uses the reflection formula, because the poles of zeta would cover the
    // values between them.
    const double sine = std::sin(pi * x);
    return pi * pi / (sine * sine) - polygamma(1, 1 - x);
  }
  const auto n = static_cast<double>(order);
  return (order % 2 != 0 ? 1 : -1) * std::tgamma(n + 1) * zeta(n + 1, x);
}

}  // namespace shardprop::reference

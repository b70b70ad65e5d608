// The Lagrange prices of the dual bound on memory rows.
#include "base/index.h"
#include "solver/bound/dual_bound.h"
#include "solver/tuning.h"

#include <algorithm>
#include <cmath>

namespace shardprop::solver {
namespace {

// The additions of this many segments of a variable are off by half a quantum
// together.
constexpr std::size_t kSegmentsAQuantum = 16;

}  // namespace

void DualBound::price_costs() {
  priced_ = core_.unary;
  if (price_.empty()) return;
  std::vector<double> prefix(price_.size() + 1, 0.0);
  for (std::size_t r = 0; r < price_.size(); ++r)
    prefix[r + 1] = prefix[r] + price_[r];
  // Each prefix is off by at most this much.
  const double off =
      prefix.back() * static_cast<double>(price_.size() + 2) * 0x1p-52;
  for (int v = 0; v < core_.size(); ++v) {
    double* const mine = &priced_[index(core_.at[index(v)])];
    const int k = core_.choices(v);
    for (const CoreSegment& s : core_.segments(v)) {
      // The rate is rounded down, so its product with the bytes is too low.
      const double rate =
          (prefix[index(s.hi)] - prefix[index(s.lo)] - 2 * off) * (1 - 0x1p-50);
      if (rate <= 0) continue;
      const std::int64_t* bytes = core_.bytes_of(s);
      for (int c = 0; c < k; ++c)
        mine[c] += rate * static_cast<double>(bytes[c]);
    }
    // Priced bytes must never be rounded up. Rounding to quanta raises a sum by
    // at most half a quantum, and each addition by at most 1/32 of one.
    const double less =
        quantum_ *
        static_cast<double>(1 + core_.segments(v).size() / kSegmentsAQuantum);
    for (int c = 0; c < k; ++c) {
      if (mine[c] != core_.cost(v)[c]) {
        mine[c] = std::min(round(mine[c]) - less, limit_);
      }
    }
  }
}

void DualBound::set_prices(const std::vector<double>& prices) {
  price_ = prices;
  price_costs();
}

void DualBound::move_prices(double gap) {
  const std::size_t rows = price_.size();
  if (rows == 0) return;
  std::vector<double> overflow(rows + 1, 0.0);
  std::vector<double> h(most_choices_);
  // Almost equal choices share their weight while steps are long, but hardly
  // when steps are short.
  const double tau = std::min(1.0, tuning::kSoftness * step_) * gap /
                     std::max(1, core_.size());
  for (int v = 0; v < core_.size(); ++v) {
    const auto segments = core_.segments(v);
    if (segments.empty()) continue;
    const int k = core_.choices(v);
    beliefs(v, h.data());
    const double least = *std::min_element(h.begin(), h.begin() + k);
    double total = 0;
    for (int c = 0; c < k; ++c) {
      double& p = h[index(c)];
      p -= least;
      p = tau > 0 ? (p > 40 * tau ? 0.0 : std::exp(-p / tau))
                  : (p <= 0 ? 1.0 : 0.0);
      total += p;
    }
    for (const CoreSegment& s : segments) {
      const std::int64_t* bytes = core_.bytes_of(s);
      double expected = 0;
      for (int c = 0; c < k; ++c) {
        expected += h[index(c)] * static_cast<double>(bytes[c]);
      }
      expected /= total;
      overflow[index(s.lo)] += expected;
      overflow[index(s.hi)] -= expected;
    }
  }
  double sum = 0;
  double norm = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    sum += overflow[r];
    const double g = sum - static_cast<double>(core_.capacity[r]);
    average_[r] += tuning::kOverflowWeight * (g - average_[r]);
    if (price_[r] > 0 || average_[r] > 0) norm += average_[r] * average_[r];
  }
  if (norm <= 0) return;
  const double step = step_ * gap / norm;
  for (std::size_t r = 0; r < rows; ++r) {
    price_[r] = std::max(0.0, price_[r] + step * average_[r]);
  }
  price_costs();
}

}  // namespace shardprop::solver

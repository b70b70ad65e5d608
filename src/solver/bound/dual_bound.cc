#include "solver/bound/dual_bound.h"

#include "base/index.h"
#include "solver/presolve/min_plus.h"
#include "solver/tuning.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace shardprop::solver {

DualBound::DualBound(const Core& core, bool leaps)
    : core_(core), has_leaps_(leaps) {
  // Sums are exact if each partial sum is below 2^51 quanta, for any degree.
  const int exponent = std::ilogb(std::max(core.ceiling, 1.0)) + 1;
  std::size_t degree = 1;
  for (int v = 0; v < core.size(); ++v)
    degree = std::max(degree, core.arcs(v).size());
  for (int v = 0; v < core.size(); ++v) {
    most_choices_ =
        std::max(most_choices_, static_cast<std::size_t>(core.choices(v)));
  }
  const int room = std::ilogb(static_cast<double>(degree) + 2) + 1;
  const int wanted = exponent + 2 + room - 51;
  quantum_ = std::ldexp(1.0, std::min(0, wanted));
  magic_ = std::ldexp(1.5, 52) * quantum_;
  limit_ = std::ldexp(1.0, exponent + 2);
  message_at_.resize(core.arc_list.size());
  reverse_at_.resize(core.arc_list.size());
  std::vector<std::size_t> into_a(core.edges.size());
  std::vector<std::size_t> into_b(core.edges.size());
  std::size_t total = 0;
  for (std::size_t e = 0; e < core.edges.size(); ++e) {
    into_a[e] = total;
    total += static_cast<std::size_t>(core.choices(core.edges[e].a));
    into_b[e] = total;
    total += static_cast<std::size_t>(core.choices(core.edges[e].b));
  }
  if (wanted > 0) {
    // Tables are multiples of 1 only, so the quantum cannot grow: sums up to
    // 2^(exponent + 2 + room) are rounded. An evaluation adds at most four
    // numbers per variable, eight per edge and one per segment to its result.
    // Each addition is off by half a unit in the last place.
    const std::size_t additions = 4 * index(core.size()) +
                                  8 * core.edges.size() +
                                  core.segment_list.size();
    slack_ = std::ldexp(static_cast<double>(additions), wanted + 51 - 52);
  }
  message_.assign(total, 0.0);
  for (int v = 0; v < core.size(); ++v) {
    for (std::size_t i = core.arc_begin[index(v)];
         i < core.arc_begin[index(v) + 1]; ++i) {
      const auto e = index(core.arc_list[i].edge);
      const bool is_a = core.edges[e].a == v;
      message_at_[i] = is_a ? into_a[e] : into_b[e];
      reverse_at_[i] = is_a ? into_b[e] : into_a[e];
    }
  }
  price_.assign(static_cast<std::size_t>(core.rows()), 0.0);
  average_.assign(price_.size(), 0.0);
  price_costs();
}

void DualBound::beliefs(int v, double* h) const {
  const int k = core_.choices(v);
  const double* unary = &priced_[index(core_.at[index(v)])];
  std::copy(unary, unary + k, h);
  for (std::size_t i = core_.arc_begin[index(v)];
       i < core_.arc_begin[index(v) + 1]; ++i) {
    const double* in = &message_[message_at_[i]];
    for (int c = 0; c < k; ++c) h[c] += in[c];
  }
}

void DualBound::sweep() {
  std::vector<double> h(most_choices_);
  std::vector<double> out(most_choices_);
  const int n = core_.size();
  for (const bool forward : {true, false}) {
    for (int step = 0; step < n; ++step) {
      const int v = forward ? step : n - 1 - step;
      const auto arcs = core_.arcs(v);
      int ahead = 0;
      for (const Arc& arc : arcs) ahead += (arc.other > v) == forward ? 1 : 0;
      if (ahead == 0) continue;
      const int k = core_.choices(v);
      std::vector<double>& scaled = out;
      beliefs(v, h.data());
      const double share =
          1.0 / std::max(ahead, static_cast<int>(arcs.size()) - ahead);
      for (int c = 0; c < k; ++c) h[index(c)] *= share;
      const std::size_t first = core_.arc_begin[index(v)];
      for (std::size_t i = 0; i < arcs.size(); ++i) {
        const Arc& arc = arcs[i];
        if ((arc.other > v) != forward) continue;
        const double* in = &message_[message_at_[first + i]];
        for (int c = 0; c < k; ++c) {
          scaled[index(c)] = h[index(c)] - in[c];
        }
        double* to = &message_[reverse_at_[first + i]];
        const int m = core_.choices(arc.other);
        min_plus(scaled.data(), k, arc.to_other, m, to);
        double least = to[0];
        for (int d = 1; d < m; ++d) least = std::min(least, to[d]);
        for (int d = 0; d < m; ++d)
          to[d] = std::min(round(to[d] - least), limit_);
        work_ += static_cast<std::uint64_t>(k * m);
      }
    }
  }
}

int DualBound::split_belief(int v, double* h, double* part) const {
  // Each edge along which the belief was last sent gets an equal share, as in
  // the backward pass. The rounding rest stays with the variable.
  const int k = core_.choices(v);
  const auto arcs = core_.arcs(v);
  int behind = 0;
  for (const Arc& arc : arcs) behind += arc.other < v ? 1 : 0;
  const double share =
      1.0 /
      std::max(1, std::max(behind, static_cast<int>(arcs.size()) - behind));
  for (int c = 0; c < k; ++c) {
    part[c] = behind == 0 ? 0.0 : round(h[c] * share);
    h[c] -= behind * part[c];
  }
  return behind;
}

double DualBound::evaluate() {
  std::vector<double> h(most_choices_);
  std::vector<double> g(most_choices_);
  std::vector<double> part(most_choices_);
  Int128 quanta = 0;
  const auto add = [&](double cost) {
    quanta += static_cast<Int128>(cost / quantum_);
  };
  for (int v = 0; v < core_.size(); ++v) {
    const int k = core_.choices(v);
    beliefs(v, h.data());
    split_belief(v, h.data(), part.data());
    add(*std::min_element(h.begin(), h.begin() + k));
    const std::size_t first = core_.arc_begin[index(v)];
    const auto arcs = core_.arcs(v);
    for (std::size_t i = 0; i < arcs.size(); ++i) {
      const Arc& arc = arcs[i];
      if (arc.other > v) continue;
      const int m = core_.choices(arc.other);
      const double* mine = &message_[message_at_[first + i]];
      const double* theirs = &message_[reverse_at_[first + i]];
      for (int c = 0; c < k; ++c) {
        h[index(c)] = part[index(c)] - mine[c];
      }
      for (int d = 0; d < m; ++d) g[index(d)] = -theirs[d];
      add(min_plus_all(h.data(), k, g.data(), m, arc.to_other));
      work_ += static_cast<std::uint64_t>(k * m);
    }
  }
  double paid = 0;
  for (std::size_t r = 0; r < price_.size(); ++r) {
    paid += price_[r] * static_cast<double>(core_.capacity[r]);
  }
  const double sum = static_cast<double>(quanta) * quantum_;
  // The sum of n rounded terms is off by less than n units in the last place.
  if (paid > 0) {
    paid += (paid * static_cast<double>(price_.size() + 2) + std::abs(sum)) *
            0x1p-52;
  }
  last_bound_ = sum - paid - slack_;
  if (last_bound_ > best_bound_) {
    best_bound_ = last_bound_;
    best_message_ = message_;
    best_price_ = price_;
  }
  return last_bound_;
}

std::vector<double> DualBound::choice_bounds() const {
  std::vector<double> out(core_.unary.size(), 0.0);
  std::vector<double> h(most_choices_);
  std::vector<double> part(most_choices_);
  std::vector<double> row(most_choices_);
  std::vector<double> column(most_choices_);
  for (int v = 0; v < core_.size(); ++v) {
    const int k = core_.choices(v);
    double* mine = &out[index(core_.at[index(v)])];
    beliefs(v, h.data());
    split_belief(v, h.data(), part.data());
    const double least = *std::min_element(h.begin(), h.begin() + k);
    for (int c = 0; c < k; ++c) mine[c] += h[index(c)] - least;
    const std::size_t first = core_.arc_begin[index(v)];
    const auto arcs = core_.arcs(v);
    for (std::size_t i = 0; i < arcs.size(); ++i) {
      const Arc& arc = arcs[i];
      if (arc.other > v) continue;
      const int m = core_.choices(arc.other);
      const double* in = &message_[message_at_[first + i]];
      const double* back = &message_[reverse_at_[first + i]];
      double* theirs = &out[index(core_.at[index(arc.other)])];
      std::fill(row.begin(), row.end(), kInfinity);
      std::fill(column.begin(), column.end(), kInfinity);
      for (int c = 0; c < k; ++c) {
        for (int d = 0; d < m; ++d) {
          const double cost =
              part[index(c)] - in[c] - back[d] +
              arc.to_other[static_cast<std::ptrdiff_t>(c) * m + d];
          double& r = row[index(c)];
          double& l = column[index(d)];
          r = std::min(r, cost);
          l = std::min(l, cost);
        }
      }
      const double all = *std::min_element(row.begin(), row.begin() + k);
      for (int c = 0; c < k; ++c) mine[c] += row[index(c)] - all;
      for (int d = 0; d < m; ++d) theirs[d] += column[index(d)] - all;
    }
  }
  if (slack_ > 0) {
    for (double& extra : out) extra = std::max(0.0, extra - slack_);
  }
  return out;
}

std::vector<std::vector<int>> DualBound::choices_below(double target) {
  restore_best();
  const std::vector<double> extra = choice_bounds();
  std::vector<std::vector<int>> out;
  for (int v = 0; v < core_.size(); ++v) {
    std::vector<int>& mine = out.emplace_back();
    for (int c = 0; c < core_.choices(v); ++c) {
      const double bound = best_bound_ + extra[index(core_.at[index(v)] + c)];
      if (std::ceil(bound) < target) mine.push_back(c);
    }
  }
  return out;
}

void DualBound::advance(double target) {
  if (last_bound_ == -kInfinity) {
    // If prices moved before the messages settle, they would overshoot.
    for (int i = 0; i < tuning::kFirstSweeps; ++i) sweep();
    evaluate();
    return;
  }
  const double before = best_bound_;
  const double goal =
      std::isfinite(target)
          ? target
          : last_bound_ +
                tuning::kAssumedGapShare * std::max(1.0, std::abs(best_bound_));
  move_prices(
      std::max(goal - last_bound_, tuning::kLeastGapShare * std::abs(goal)));
  sweep();
  evaluate();
  leap();
  if (best_bound_ >
      before + tuning::kLeastPriceGainShare * std::max(0.0, goal - before)) {
    since_best_ = 0;
  } else if (++since_best_ > tuning::kDualPatience) {
    if (step_ >= tuning::kSmallestStep) {
      since_best_ = 0;
      step_ *= tuning::kShorterPriceStep;
    }
    restore_best();
    last_bound_ = best_bound_;
  }
}

void DualBound::leap() {
  if (!has_leaps_ || !price_.empty() || leap_in_-- > 0) return;
  if (leap_from_.empty()) {
    leap_from_ = message_;
    leap_in_ = leap_every_;
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t work = work_;
  const double best = best_bound_;
  const std::vector<double> before = message_;
  const double bound = last_bound_;
  for (std::size_t i = 0; i < message_.size(); ++i) {
    const double to = before[i] + leap_ * (before[i] - leap_from_[i]);
    message_[i] = std::clamp(round(to), -limit_, limit_);
  }
  sweep();
  if (evaluate() > bound) {
    leap_ = std::min(2 * leap_, tuning::kLongestLeap);
    leap_every_ = tuning::kSweepsBetweenLeaps;
  } else {
    message_ = before;
    last_bound_ = bound;
    leap_ = std::max(1.0, leap_ / 4);
    leap_every_ = std::min(2 * leap_every_, tuning::kMostSweepsBetweenLeaps);
  }
  leap_in_ = leap_every_;
  leap_from_ = message_;
  ++leaps_.count;
  if (best_bound_ > best) ++leaps_.kept;
  leaps_.raised_by += best_bound_ - best;
  leaps_.work += work_ - work;
  leaps_.seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
}

void DualBound::set_message(std::size_t arc, std::span<const double> costs) {
  double* to = &message_[message_at_[arc]];
  for (const double cost : costs) {
    *to++ = std::clamp(round(cost), -limit_, limit_);
  }
}

void DualBound::restore_best() {
  message_ = best_message_;
  price_ = best_price_;
  price_costs();
}

std::vector<int> DualBound::decode() const {
  std::vector<int> x(static_cast<std::size_t>(core_.size()), 0);
  std::vector<double> h(most_choices_);
  for (int v = 0; v < core_.size(); ++v) {
    const int k = core_.choices(v);
    const double* unary = &priced_[index(core_.at[index(v)])];
    std::copy(unary, unary + k, h.begin());
    const std::size_t first = core_.arc_begin[index(v)];
    const auto arcs = core_.arcs(v);
    for (std::size_t i = 0; i < arcs.size(); ++i) {
      const double* add =
          arcs[i].other < v
              ? arcs[i].from_other +
                    static_cast<std::ptrdiff_t>(x[index(arcs[i].other)]) * k
              : &message_[message_at_[first + i]];
      for (int c = 0; c < k; ++c) h[index(c)] += add[c];
    }
    x[index(v)] = static_cast<int>(std::min_element(h.begin(), h.begin() + k) -
                                   h.begin());
  }
  return x;
}

}  // namespace shardprop::solver

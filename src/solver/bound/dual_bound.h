// A lower bound on the core: sequential tree-reweighted message passing
// (Kolmogorov, TPAMI 2006) on the costs, Lagrange prices on the memory rows.
//
// For any messages and any prices >= 0,
//
//   bound = sum over variables of the least of its costs, priced bytes and
//           incoming messages
//         + sum over edges of the least of table - both messages
//         - sum over rows of price * capacity
//
// never exceeds the cost of a feasible assignment. Messages and priced bytes
// are rounded to multiples of a power of two, the quantum, so that every sum of
// the bound is exact in doubles and no rounding can lift it above the truth.
// Costs are whole and the quantum is at most 1: under a ceiling of about 2^41 to
// 2^48, by the largest degree, or more, sums do round. The bound then is lower
// by the most that they can be off.
#pragma once

#include "solver/presolve/core.h"

#include <cstdint>
#include <span>
#include <vector>

namespace shardprop::solver {

class DualBound {
 public:
  explicit DualBound(const Core& core);

  // One pass over the variables forward and one backward.
  void sweep();
  // The bound at the present messages and prices, the core's offset left out.
  double evaluate();
  // A step of price ascent, a sweep and an evaluation. `target` is the best
  // known cost without the offset, or infinity. Steps shrink when they fail;
  // stalled() says when they have become too small to matter.
  void advance(double target);
  bool stalled() const {
    return step_ < kSmallestStep && since_best_ > kPatience;
  }
  void set_prices(const std::vector<double>& prices);
  // Back to the messages and prices of the best bound so far.
  void restore_best();

  // What the other end of an arc tells its owner, by the owner's choices, at
  // the best bound so far.
  std::span<const double> best_message(std::size_t arc, int owner) const {
    return std::span(best_message_)
        .subspan(message_at_[arc], index(core_.choices(owner)));
  }
  void set_message(std::size_t arc, std::span<const double> costs);

  // Whether sums are exact; otherwise bounds are lower by a slack.
  bool is_exact() const { return slack_ == 0; }
  // All messages are multiples of it, a power of two.
  double quantum() const { return quantum_; }
  // Messages stay within. If is_exact(), the messages into a variable can be
  // added exactly.
  double limit() const { return limit_; }
  double best_bound() const { return best_bound_; }
  const std::vector<double>& prices() const { return price_; }
  const std::vector<double>& best_prices() const { return best_price_; }
  // A choice per variable, taken in order, each the best given those before.
  std::vector<int> decode() const;
  // What taking each choice adds to the present bound at least.
  std::vector<double> choice_bounds() const;
  // The choices of each variable that can be part of anything cheaper than
  // `target`, at the best bound so far. Costs are whole.
  std::vector<std::vector<int>> choices_below(double target);
  // Table entries touched so far: the unit of work limits.
  std::uint64_t work() const { return work_; }

 private:
  static constexpr double kSmallestStep = 1e-6;
  static constexpr int kPatience = 8;
  static constexpr int kBetweenLeaps = 4;  // sweeps, where leaps help

  // Messages creep along one way for many sweeps: what changed in the last few
  // is added once more, or several times, and kept where the bound rises.
  // Nothing with memory rows, whose prices move beside the messages.
  void leap();
  void move_prices(double gap);
  void beliefs(int v, double* h) const;
  // Splits the belief h of `v` into what goes to each edge behind it and what
  // stays; returns the number of edges behind.
  int split_belief(int v, double* h, double* part) const;
  void price_costs();
  double round(double x) const { return (x + magic_) - magic_; }

  const Core& core_;
  std::size_t most_choices_ = 1;
  double quantum_ = 1;
  double magic_ = 0;  // adding and subtracting it rounds to the quantum
  double limit_ = 0;  // messages stay within, for exactness
  double slack_ = 0;  // the most that rounding can lift a bound
  std::vector<std::size_t>
      message_at_;  // per arc: message into the arc's owner
  std::vector<std::size_t> reverse_at_;  // per arc: message into the other end
  std::vector<double> message_;
  std::vector<double> price_;
  std::vector<double> priced_;   // unary plus priced bytes, by choice
  std::vector<double> average_;  // smoothed overflow of each row
  double best_bound_ = -kInfinity;
  std::vector<double> best_message_;
  std::vector<double> best_price_;
  double last_bound_ = -kInfinity;
  double step_ = 0.02;
  int since_best_ = 0;
  std::vector<double> leap_from_;  // the messages at the last leap
  double leap_ = 1;                // times what has changed since
  int leap_every_ = kBetweenLeaps;
  int leap_in_ = 0;  // so many sweeps
  std::uint64_t work_ = 0;
};

}  // namespace shardprop::solver

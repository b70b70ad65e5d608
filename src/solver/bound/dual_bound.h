// DualBound is a lower bound on the core. It uses sequential tree-reweighted
// message passing (Kolmogorov, TPAMI 2006) on the costs and Lagrange prices on
// the memory rows.
//
// For any messages and any prices >= 0,
//
//   bound = sum over variables of the least of its costs, priced bytes and
//           incoming messages
//         + sum over edges of the least of table - both messages
//         - sum over rows of price * capacity
//
// The bound never exceeds the cost of a feasible assignment. Messages and
// priced bytes are rounded to multiples of a power of two, the quantum. Every
// sum of the bound is then exact in doubles, and rounding cannot raise it.
//
// Costs are whole and the quantum is at most 1. With a ceiling above 2^41 to
// 2^48 (by the largest degree), sums are rounded. The bound is then lowered by
// the largest possible error.
#pragma once

#include "solver/presolve/core.h"
#include "solver/tuning.h"

#include <cstdint>
#include <span>
#include <vector>

namespace shardprop::solver {

class DualBound {
 public:
  // Without `leaps`, messages change by sweeps only.
  explicit DualBound(const Core& core, bool leaps = true);

  // Passes over the variables once forward and once backward.
  void sweep();
  // Returns the bound at the current messages and prices, without the core's
  // offset.
  double evaluate();
  // Does one step of price ascent, a sweep and an evaluation. `target` is the
  // best known cost without the offset, or infinity. Steps shrink when they
  // fail; stalled() is true once they are too small to matter.
  void advance(double target);
  bool stalled() const {
    return step_ < tuning::kSmallestStep && since_best_ > tuning::kDualPatience;
  }
  void set_prices(const std::vector<double>& prices);
  // Restores the messages and prices of the best bound so far.
  void restore_best();

  // Returns the message into an arc's owner from the other end, by the owner's
  // choices, at the best bound so far.
  std::span<const double> best_message(std::size_t arc, int owner) const {
    return std::span(best_message_)
        .subspan(message_at_[arc], index(core_.choices(owner)));
  }
  void set_message(std::size_t arc, std::span<const double> costs);

  // Returns whether sums are exact; otherwise bounds are lower by a slack.
  bool is_exact() const { return slack_ == 0; }
  // A power of two; all messages are multiples of it.
  double quantum() const { return quantum_; }
  // Messages stay within this limit. If is_exact(), the messages into a
  // variable add up exactly.
  double limit() const { return limit_; }
  double best_bound() const { return best_bound_; }
  const std::vector<double>& prices() const { return price_; }
  const std::vector<double>& best_prices() const { return best_price_; }
  // Returns a choice per variable. It goes through the variables in order and
  // takes the best choice given the earlier ones.
  std::vector<int> decode() const;
  // Returns the least increase of the current bound for each choice.
  std::vector<double> choice_bounds() const;
  // Returns the choices of each variable that can be part of an assignment
  // below `target`, at the best bound so far. Costs are whole.
  std::vector<std::vector<int>> choices_below(double target);
  // Returns the table entries touched so far, the unit of work limits.
  std::uint64_t work() const { return work_; }

  // Leaps is the record of all leaps so far.
  struct Leaps {
    std::uint64_t count = 0;
    std::uint64_t kept = 0;  // which raised the bound
    double raised_by = 0;    // sum over the best bounds
    std::uint64_t work = 0;
    double seconds = 0;
  };
  const Leaps& leaps() const { return leaps_; }

 private:
  // Messages move slowly in one direction for many sweeps. A leap adds their
  // last change once more, or several times, and keeps the result if the bound
  // rises. It is not used with memory rows, whose prices move together with
  // the messages.
  void leap();
  void move_prices(double gap);
  void beliefs(int v, double* h) const;
  // Splits the belief h of `v` into the shares of the edges to earlier
  // variables and the rest. Returns the number of these edges.
  int split_belief(int v, double* h, double* part) const;
  void price_costs();
  double round(double x) const { return (x + magic_) - magic_; }

  const Core& core_;
  std::size_t most_choices_ = 1;
  double quantum_ = 1;
  double magic_ = 0;  // adding and subtracting it rounds to the quantum
  double limit_ = 0;  // messages stay within, for exactness
  double slack_ = 0;  // the most that rounding can raise a bound
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
  double step_ = tuning::kFirstPriceStep;
  int since_best_ = 0;
  bool has_leaps_ = true;
  Leaps leaps_;
  std::vector<double> leap_from_;  // messages at the last leap
  double leap_ = 1;                // factor on the change since
  int leap_every_ = tuning::kSweepsBetweenLeaps;
  int leap_in_ = 0;  // sweeps until the next leap
  std::uint64_t work_ = 0;
};

}  // namespace shardprop::solver

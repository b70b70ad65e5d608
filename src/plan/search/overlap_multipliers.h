// OverlapMultipliers searches for overlap multipliers, one for each load of an
// overlap window (window_loads.h): the Lagrange multipliers of overlappable time.
// `Window` is such a load below: there are several if a step has several
// micro-batches.
//
// In a window, overlapped time is at most the compute. A plan pays max(0,
// overlappable - compute), which is the maximum of multiplier * (overlappable -
// compute) over multipliers from 0 to 1. So for any multipliers, the cheapest
// plan of the priced problem is a lower bound of the true optimum.
//
// The cost of a plan is linear in the multipliers. So every plan found bounds
// the value of all multipliers from above. The next multipliers maximise the
// minimum of these bounds (Kelley's cutting planes). If that maximum is far
// above the best bound, the next multipliers are on the way to it.
//
// Windows of one class, such as those of equal blocks in one phase, always share
// one multiplier (Windows::class_of).
//
// At first, one multiplier serves all classes in which the first plan had
// exposed time, and the others are 0. Each class then gets a multiplier of its
// own, near the best ones so far. This begins when the common multiplier cannot
// improve, or when a plan has exposed time in another class.
#pragma once

#include "plan/evaluate/plan_assignment.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardprop {

class OverlapMultipliers {
 public:
  // All multipliers begin at 0. Their unit is 1 / kOverlapMultiplierUnit. Each
  // window is a class of its own.
  explicit OverlapMultipliers(std::size_t windows)
      : OverlapMultipliers(std::vector<std::int64_t>(windows, 0)) {}
  // The multipliers begin at these, one for each window. If one of them is not
  // 0, each class has a multiplier of its own from the beginning. `classes` is
  // by window; if it is empty, each window is a class of its own.
  explicit OverlapMultipliers(const std::vector<std::int64_t>& first,
                              std::vector<std::size_t> classes = {});

  // Returns the multipliers by window.
  std::vector<std::int64_t> prices() const;

  // Adds the cheapest plan at the present multipliers and the bound that they
  // gave, then moves to other multipliers. Returns false if no multipliers
  // promise more.
  bool learn(const PlanEvaluation& plan, std::int64_t bound);
  // Returns to the best multipliers. The next step may again be large.
  void go_back() {
    prices_ = best_;
    reach_ = 0;
    all_uniform_ = false;
  }

  // Returns the full multiplier for each window with more overlappable time
  // than compute, and 0 for the others.
  static std::vector<std::int64_t> extreme(
      const std::vector<WindowLoad>& loads);

 private:
  // Cut is a cutting plane: a plan costs base + the sum of multiplier * excess
  // over the classes.
  struct Cut {
    double base = 0;
    std::vector<double> excess;
  };
  bool move_all();
  bool move_each();
  // Returns the minimum over the cutting planes. `at` becomes the index of the
  // plane that attains it.
  double promise(const std::vector<double>& prices, std::size_t& at) const;
  std::vector<double> most_promising() const;
  std::vector<double> on_the_way(const std::vector<double>& there) const;

  std::vector<std::size_t> classes_;  // by window
  std::vector<Cut> cuts_;
  std::vector<std::int64_t> prices_;  // by class
  std::vector<std::int64_t> best_;    // by class
  std::int64_t bound_ = 0;
  std::vector<bool> exposed_;  // in some plan, by class
  bool all_uniform_ = true;
  std::int64_t highest_ = 0;  // largest multiplier tried for all classes
  std::int64_t reach_ = 0;    // largest step from the best multipliers
};

}  // namespace shardprop

// OverlapBranching closes the duality gap of the overlap multipliers by branch
// and bound.
//
// The bound of overlap_multipliers.h is that of mixed plans. Let one plan transfer
// more than it computes, and another one less. Then the best multipliers give both
// the same cost, which is less than that of either. A branch leaves a variable some
// of its choices, so that it contains one of the two plans. The branch has
// multipliers of its own, which raise its bound:
//
//   plan          cost without exposed time   excess    cost
//   A                                125 ms   -20 ms   125 ms
//   B                                108 ms    34 ms   142 ms
//   one multiplier for both, 0.31: A and B cost 118.6 ms
//   A alone, multiplier 0: 125 ms; B alone, multiplier 1: 142 ms
//
// The excess is overlappable time less compute, which a plan pays for if it is
// positive.
//
// The branches of an earlier search are divided alike, and bounded anew from their
// multipliers and messages. This takes a tenth of the time if the problems differ
// in a pin.
//
// Why the bound holds: at any multipliers from 0 to 1, no plan costs less than
// its assignment in the network. The bound of a branch is that of its network at
// some multipliers, or that of the branch that it is a part of. The two parts of
// a branch contain all of its plans, except those with a choice that is in no
// plan below the target (solver/possible_choices.h). So no plan costs less than
// the target and the bounds of all branches that were not divided.
#pragma once

#include "plan/evaluate/plan_assignment.h"
#include "plan/network/choice_excess.h"
#include "plan/network/division_tree.h"
#include "plan/network/network_assignment.h"
#include "plan/search/network_search.h"
#include "plan/tuning.h"

#include <shardprop/solver/solve.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

namespace shardprop {

class OverlapBranching {
 public:
  // `search` must outlive the object.
  explicit OverlapBranching(NetworkSearch& search)
      : search_(search), best_(search.incumbent()) {}

  // Adds an assignment that a network of the search had, and its figures.
  void add(const NetworkAssignment& assignment, const PlanEvaluation& figures);
  // Divides branches until the best plan is within the gap or a limit ends it.
  // `network` has the overlap multipliers to start from, and the identity of all
  // assignments that were added. Precondition: the search has a plan.
  void run(const NetworkOptions& network) {
    bound(network, tuning::kMostBranches, false);
  }
  // Does the same with the branches of an earlier search, and divides at most two
  // more for each node of its tree. If no branch reaches the target, they do not fit the problem,
  // and the search forgets them. Precondition: the search has branches to start
  // from.
  void bound_again(const NetworkOptions& network) {
    bound(network, 2 * static_cast<int>(search_.branches()->nodes.size()),
          true);
  }

 private:
  // By window, from 0 to 1. Windows of one class may have different signs of
  // excess, so that only their own multipliers are exact.
  using Multipliers = std::vector<double>;

  // Line is the cost of an assignment at all multipliers: base + the sum of
  // multiplier * excess.
  struct Line {
    NetworkAssignment assignment;
    double base = 0;
    std::vector<double> excess;  // by load (window_loads.h)
    double at(const Multipliers& multipliers) const;
  };
  using Lines = std::vector<const Line*>;

  struct Branch {
    ChoicesLeft left;
    std::int64_t bound = 0;   // no plan of the branch costs less
    Multipliers multipliers;  // of the bound
    std::shared_ptr<const solver::Messages> messages;  // of the bound
    NetworkAssignment decoded;  // the last one; empty if there is none
    std::size_t node = 0;       // of divisions_
    friend bool operator<(const Branch& a, const Branch& b) {
      return a.bound > b.bound;  // the first of a heap has the least bound
    }
  };
  // Promise is the largest bound that the known plans of a branch allow.
  struct Promise {
    double value = -std::numeric_limits<double>::infinity();
    Multipliers at;
  };
  // The ends of a division, which differ in a variable.
  struct Ends {
    NetworkAssignment up;
    NetworkAssignment down;
    std::vector<double> weights;  // by load, see ChoiceExcess
  };

  // Bounds this many branches at most. If `is_again`, those of an earlier search
  // only.
  void bound(const NetworkOptions& network, int most_branches, bool is_again);
  void open_root();
  // Opens the branches of an earlier search that may have cheaper plans. Returns
  // false if they do not fit.
  bool open_earlier();
  void keep_branches();
  NetworkOptions at(const Multipliers& multipliers) const;
  std::int64_t target() const { return best_.enough_bound(); }
  void open(Branch branch);
  void close(std::int64_t bound);
  void raise_bound(Branch& branch);
  void bound_at_promise(Branch& branch);
  // Raises the bound of the branch at these multipliers, and leaves out choices.
  // Returns whether it found another plan.
  bool bound_at(Branch& branch, const Multipliers& multipliers);
  void divide(Branch branch);
  bool divide_between(Branch& branch, const Ends& ends);
  // Opens the two parts of a branch.
  void divide_at(Branch branch, const NetworkAssignment& any,
                 std::size_t variable,
                 const std::function<bool(std::uint32_t)>& is_first);
  void divide_widest(Branch branch);
  Lines lines_of(const Branch& branch) const;
  static double least_at(const Lines& lines, const Multipliers& at);
  Promise promise(const Lines& lines, const Multipliers& from) const;
  Multipliers toward(const Promise& most, const Lines& lines,
                     const Branch& branch, double reach) const;
  std::optional<Ends> ends_of(const Branch& branch) const;

  NetworkSearch& search_;
  PlanIncumbent& best_;
  Budget budget_;
  NetworkOptions network_;
  std::vector<Line> lines_;
  std::vector<Branch> open_;  // a heap
  NetworkDivisions divisions_;
  // The least bound of the branches that are neither open nor divided.
  std::int64_t closed_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace shardprop

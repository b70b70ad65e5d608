// CheaperAssignments visits the assignments of a network that cost less than a
// known plan. A network counts a lower bound of the memory, so its cheapest
// assignments may exceed the limit, and the best plan that fits may be any of
// the others.
//
//   best plan that fits: 70 us; assignments: 61 us (too large), 64 us (fits),
//   67 us; visited: 61, then 64 and no more, since below() is now 64 us
#pragma once

#include "base/budget.h"

#include <shardprop/solver/checker.h>
#include <shardprop/solver/problem.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace shardprop {

class CheaperAssignments {
 public:
  struct Visitor {
    // Returns the cost below which assignments are visited; it may fall.
    std::function<std::int64_t()> below;
    std::function<void(const solver::Assignment&)> visit;
  };

  // `network` must outlive the object.
  explicit CheaperAssignments(const solver::Problem& network);

  // Visits all assignments within the network's limit that cost less than
  // below(). Returns whether the budget sufficed for all of them. Its work is
  // the table entries read; each visit counts as `visit_work` of them.
  bool run(const Visitor& visitor, Budget& budget, std::uint64_t visit_work);

 private:
  // An edge from an earlier variable, read by the choices of the two.
  struct Arc {
    std::size_t earlier = 0;
    solver::Table table;
    bool earlier_is_row = true;
    // By choice of the earlier variable: the least that this edge and all that
    // depends on it can cost.
    std::vector<std::int64_t> least;

    std::int64_t cost(std::size_t of_earlier, std::size_t of_later) const {
      return earlier_is_row
                 ? table.costs[of_earlier * table.columns + of_later]
                 : table.costs[of_later * table.columns + of_earlier];
    }
  };
  struct Candidate {
    std::int64_t cost = 0;  // least cost of an assignment that begins like this
    std::uint32_t choice = 0;
  };

  void find_arcs();
  void find_least_costs();
  std::vector<Candidate> candidates(std::size_t variable, std::int64_t least,
                                    std::int64_t below);
  bool fits(std::size_t variable) const;
  void use_bytes(std::size_t variable, std::uint32_t choice, int sign);

  const solver::Problem& network_;
  std::vector<std::vector<Arc>> arcs_;  // by later variable
  // By variable and choice: its cost and the least that depends on it.
  std::vector<std::vector<std::int64_t>> least_from_;
  // By variable. A variable without earlier neighbours has the least of its
  // least_from_, and any other variable has 0.
  std::vector<std::int64_t> least_of_root_;
  std::int64_t least_ = 0;  // of all assignments
  solver::Assignment choices_;
  std::vector<std::int64_t> bytes_;  // by time, of the chosen variables
  std::uint64_t work_ = 0;
};

}  // namespace shardprop

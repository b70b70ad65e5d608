// ForestSearch is a local search that re-solves forests of variables exactly.
//
// A move takes a random set of variables that induces a forest and shares tight
// memory rows. It fixes all other variables and minimises cost plus priced
// bytes over the set by dynamic programming. If the result overflows a row, the
// price of the row rises until the old and the new choice cost the same. The
// forest is solved again until the result fits (Dinkelbach's iteration on the
// block's own Lagrangian). Row loads are stored in a range-add, range-maximum
// tree.
//
// An assignment that overflows is repaired in the same way. The existing
// overflow is tolerated at a high penalty and may never grow.
#pragma once

#include "base/budget.h"
#include "solver/model/rng.h"
#include "solver/model/row_load.h"
#include "solver/presolve/core.h"

#include <cstdint>
#include <vector>

namespace shardprop::solver {

class ForestSearch {
 public:
  ForestSearch(const Core& core, std::uint64_t seed);

  void assign(const std::vector<int>& choices);
  // Sets the prices that guide the search, usually the dual's; they never
  // decide.
  void set_prices(const std::vector<double>& row_prices);
  // Searches until `work` more table entries have been touched, or it must
  // stop.
  void run(std::uint64_t work, const Budget& budget);
  // A move that raises the cost is accepted with the probability
  // exp(-increase / temperature).
  void set_temperature(double temperature) { temperature_ = temperature; }

  const std::vector<int>& choices() const { return x_; }
  double cost() const { return cost_; }
  bool feasible() const {
    return overflowing_.empty() && cost_ < core_.ceiling;
  }
  // Returns the best feasible assignment since assign(); empty if none.
  const std::vector<int>& best() const { return best_; }
  double best_cost() const { return best_cost_; }
  std::uint64_t work() const { return work_; }

 private:
  struct Member {
    int variable = 0;
    int parent = -1;                      // index into block_, -1 at a root
    const double* to_parent = nullptr;    // rows: my choice
    const double* from_parent = nullptr;  // rows: the parent's choice
    std::size_t at = 0;                   // first choice in base_ and belief_
    int before = 0;
    int choice = 0;
  };
  // Touch describes how a variable outside the block would join it.
  struct Touch {
    int count = 0;
    int parent = -1;
    const double* to_parent = nullptr;
    const double* from_parent = nullptr;
  };
  struct ExtraPrice {
    int row = 0;
    double price = 0;
  };
  struct Overflow {
    int row = 0;
    std::int64_t tolerated = 0;
  };

  void pick_block();
  void add_member(int v, const Touch& touch);
  int variable_at(int row);
  bool improve_block();
  void prepare_block(double steer);
  void solve_block();
  void raise_prices(double gain);
  // The cost of the block at `before` or at `choice`. `objective` is the true
  // cost and penalty; `priced` adds all prices that guide the search.
  struct BlockCost {
    double objective = 0;
    double priced = 0;
  };
  BlockCost block_cost(int Member::* which) const;
  std::int64_t bytes_added(int row) const;
  double extra_rate(int lo, int hi) const;
  void move_loads(int v, int from, int to);
  void give_back();
  void recompute_cost();
  void refresh_penalties();
  void note_best();
  void judge_penalty(bool moved);
  double overflow() const;  // bytes, all rows together

  const Core& core_;
  Rng rng_;
  RowLoad load_;
  std::vector<int> x_;
  double cost_ = 0;
  double temperature_ = 0;
  std::uint64_t work_ = 0;

  std::vector<double> steering_;  // row prices of each choice
  std::vector<double> penalty_;   // penalty of each choice in overflowing rows
  double penalty_price_ = 0;
  int rejected_in_a_row_ = 0;
  int stuck_ = 0;  // moves since the overflow last shrank
  std::vector<Overflow> overflowing_;
  double last_overflow_ = kInfinity;

  std::vector<Member> block_;
  std::vector<Touch> touch_;
  std::vector<char> in_block_;
  std::vector<int> touched_;
  std::vector<int> frontier_;
  std::vector<double> base_;    // true cost and penalty given the rest
  std::vector<double> priced_;  // base_ and every price
  std::vector<double> belief_;
  std::vector<double> message_;
  std::vector<ExtraPrice> extra_;

  struct Start {
    int row = 0;
    int variable = 0;
  };
  struct Lasting {
    int lo = 0;
    int hi = 0;
    int variable = 0;
  };
  std::vector<Start> starts_;     // every segment, by first row
  std::vector<Lasting> lasting_;  // segments over many rows

  std::vector<int> best_;
  double best_cost_ = kInfinity;
};

}  // namespace shardprop::solver

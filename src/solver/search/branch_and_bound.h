// BranchAndBound is a depth-first search. Every node is a network that all
// passes reduce, the dual bounds, and one choice splits.
#pragma once

#include "base/budget.h"
#include "solver/model/network.h"
#include "solver/presolve/pass_table.h"

#include <cstdint>
#include <vector>

namespace shardprop::solver {

class BranchAndBound {
 public:
  // Searches the assignments of `root` that cost less than `below`.
  // `root_row_price` has prices of its rows, or is empty.
  BranchAndBound(Network root, Int128 below, std::vector<double> root_row_price,
                 const PassSet& passes, std::uint64_t seed);

  // Lowers the limit when a better assignment is known from elsewhere.
  void lower(Int128 below) { below_ = below < below_ ? below : below_; }
  // Works on open nodes until it has done `work` more, all nodes are closed, or
  // it must stop.
  void run(std::uint64_t work, const Budget& budget, PassTable& table);

  bool done() const { return open_.empty(); }
  // No assignment of the root costs less than the smaller of bound() and
  // `below`.
  Int128 bound() const;
  bool improved() const { return !choices_.empty(); }
  // Returns the choices of the root's variables that cost best_cost().
  const std::vector<int>& choices() const { return choices_; }
  Int128 best_cost() const { return best_cost_; }
  std::uint64_t work() const { return work_; }

 private:
  struct Node {
    Network network;
    Int128 bound;
    std::vector<std::int64_t> price_time;
    std::vector<double> price;
  };

  struct Bounded;

  void process(Node node, const Budget& budget, PassTable& table);
  bool settle(Network& network, PassTable& table);
  void raise_bound(Node& node, Bounded& here, double room, double target,
                   const Budget& budget, PassTable& table);
  void look_around(const Network& network, const Bounded& here, double room,
                   const Budget& budget);
  bool prune(Network& network, const Bounded& here) const;
  void split(Node node, const Bounded& here);
  void offer(const Network& network, std::vector<int> choices, Int128 cost);

  PassSet passes_;
  std::uint64_t seed_;
  std::vector<Node> open_;
  Int128 below_;
  std::vector<int> choices_;
  Int128 best_cost_ = 0;
  std::uint64_t work_ = 0;
};

}  // namespace shardprop::solver

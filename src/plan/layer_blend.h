// LayerBlend: plans that follow one known plan in some of a model's repeated
// layers, and others in the rest.
//
// Prices for hidden time (hidden_prices.h) lead to plans in which all layers
// are alike, with more to hide than there is compute or with less. What is best
// lies between: so many layers as in this one, so many as in that. How many is
// guessed from the known plans, as if each layer had its share of what a plan
// costs and hides, and corrected by what the plans that were tried really are.
#pragma once

#include "plan/network_search.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace shardprop {

class LayerBlend {
 public:
  explicit LayerBlend(NetworkSearch& search);

  // Adds a solution, if it is a new one. All solutions belong to networks of
  // one identity, which run() and polish() are called with.
  void add(const Tried& tried);

  // Tries blends on the network until none promises to be cheaper.
  void run(const NetworkOptions& network);
  // Solves one layer after another again, the others held, at prices between
  // those of the network and what a bit of hidden time is worth in the best
  // plan, until that gets no better.
  void polish(const NetworkOptions& network);

 private:
  struct Known {
    NetworkAssignment assignment;
    PlanEvaluation evaluation;
  };
  // Layers that follow each of the known plans.
  using Counts = std::vector<std::int64_t>;
  struct Guess {
    Counts counts;
    double cost = 0;
  };

  // What so many layers cost, by what `at` really costs.
  double predicted(const Counts& counts, const Guess& at,
                   const PlanEvaluation& there) const;
  // The cheapest that was not tried yet, by steps from `at`.
  Guess most_promising(const Guess& at, const PlanEvaluation& there) const;
  // Which plan each layer follows.
  static std::vector<std::size_t> layers_by(const Counts& counts);
  NetworkOutcome solve(const Counts& counts, const NetworkOptions& network);
  // Keeps what was tried last, if it is the best so far, and what its layers
  // follow.
  bool keep_best(std::vector<std::size_t> follows);
  std::vector<std::size_t> followed_around(std::size_t layer) const;
  NetworkOutcome solve_again(std::size_t layer, double share,
                             const NetworkOptions& network);

  NetworkSearch& search_;
  std::vector<Known> known_;
  Known best_;
  std::optional<std::int64_t>
      polished_;                      // what a plan cost that gets no better
  std::vector<std::size_t> follows_;  // by layer: which plan the best does
  std::int64_t num_layers_ = 0;
  std::vector<std::size_t> layers_;  // by slot
  std::set<Counts> tried_;
};

}  // namespace shardprop

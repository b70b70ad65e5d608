// LayerMix builds layer mixes: plans that follow one known plan in some of a
// model's repeated layers and other known plans in the rest.
//
// Overlap multipliers (overlap_multipliers.h) lead to plans with equal layers, which
// have more overlappable time than compute, or less. The optimum is between
// them: some layers follow one plan, the others another one. The number of
// layers is predicted from the known plans, as if each layer had an equal share
// of a plan's cost and overlappable time. The figures of the mixes that were
// solved correct this prediction.
#pragma once

#include "plan/search/network_search.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace shardprop {

class LayerMix {
 public:
  explicit LayerMix(NetworkSearch& search);

  // Adds a solution if its cost and window loads are new. All solutions belong
  // to networks of one identity, with which run() and resolve_layers() are
  // called.
  void add(const SolvedNetwork& solved);

  // Solves mixes on the network until no mix is predicted to be cheaper.
  void run(const NetworkOptions& network);
  // Solves one layer after another again, with the choices of all other layers
  // fixed, until the plan no longer improves. The overlap multipliers are
  // between those of the network and the value that overlapped time has in the
  // best plan.
  void resolve_layers(const NetworkOptions& network);

 private:
  struct Known {
    NetworkAssignment assignment;
    PlanEvaluation evaluation;
  };
  // Counts is the number of layers that follow each known plan.
  using Counts = std::vector<std::int64_t>;
  struct Guess {
    Counts counts;
    double cost = 0;
  };

  // Returns the predicted cost of a mix, starting from the figures `there` of
  // the solved mix `at`.
  double predicted(const Counts& counts, const Guess& at,
                   const PlanEvaluation& there) const;
  // Returns the cheapest predicted mix that was not solved yet, by steps from
  // `at`.
  Guess most_promising(const Guess& at, const PlanEvaluation& there) const;
  // Returns, by layer, the plan that it follows.
  static std::vector<std::size_t> layers_by(const Counts& counts);
  SolvedNetwork solve(const Counts& counts, const NetworkOptions& network);
  // Keeps a solution if it is the best so far, with the plan that each of its
  // layers follows.
  bool keep_best(const SolvedNetwork& solved, std::vector<std::size_t> follows);
  std::vector<std::size_t> followed_around(std::size_t layer) const;
  SolvedNetwork solve_again(std::size_t layer, double share,
                            const NetworkOptions& network);

  NetworkSearch& search_;
  std::vector<Known> known_;
  Known best_;
  // The cost of a plan that resolve_layers() cannot improve.
  std::optional<std::int64_t> resolved_;
  // By layer: the plan that the best plan follows.
  std::vector<std::size_t> follows_;
  std::int64_t num_layers_ = 0;
  std::vector<std::size_t> layers_;  // by slot
  std::set<Counts> tried_;
};

}  // namespace shardprop

// PlanNetwork states a plan problem as a cost function network, and reads its
// solutions as assignments.
//
// The network has the variables of the plan problem, with their own choices,
// and one variable for each live interval of a buffer. The choices of a live
// interval are the sets of layouts in which the buffer may be cached in it. An
// interval is a segment of uses or, if memory counts, a pause before a segment.
//
// Variables that choose alike (problem/equal_choices.h) are one variable of the
// network, which stands for all of them (shared_variables.h). An assignment of
// the network is decoded to a plan of all layers.
//
// An edge leads from the cached layouts to each use, and from one live interval
// to the next. A last use that is alone in its segment has no interval of its
// own. Its edge leads from the interval before it, or from the producer if
// there is none.
//
// The network counts a lower bound of the memory: buffers and copies while they
// are kept. It does not count the scratch of a redistribution, nor copies that
// are made for a single use within a segment. evaluate() counts everything.
//
// A search solves many networks that differ only in prices, reserved bytes and
// remaining choices. It builds one network and gives it other prices for each
// solve:
//
//   PlanNetwork network(problem, {});
//   SolvedNetwork solved =
//       network.solve({.overlap_multipliers = {512, 1024}}, budget);
//   if (solved) ...  // solved.plan, solved.evaluation
#pragma once

#include "plan/evaluate/plan_assignment.h"
#include "plan/network/choice_excess.h"
#include "plan/network/live_interval.h"
#include "plan/network/network_assignment.h"
#include "plan/network/network_structure.h"
#include "plan/network/solved_network.h"
#include "plan/network/telling_slots.h"

#include <shardprop/solver/problem.h>
#include <shardprop/solver/solve.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace shardprop {

// NetworkOptions are the memory, the prices and the restriction of a network.
struct NetworkOptions {
  // Bytes per rank. If empty, the network does not count memory.
  std::optional<std::int64_t> memory_limit;
  // By slot: bytes to keep free in addition to the bytes that the network
  // counts. May be empty.
  std::vector<std::int64_t> reserved;
  // The most bytes that a redistribution may take in addition to the bytes that
  // the network counts. Redistributions that take more are forbidden. If empty,
  // nothing is forbidden.
  std::optional<std::int64_t> most_uncounted;
  // The prices. By load of an overlap window (window_loads.h): the overlap
  // multiplier, in parts of kOverlapMultiplierUnit, from 0 to all of it. Each
  // overlappable nanosecond costs it, and each nanosecond of compute earns it.
  // The cheapest assignment of the network is then a lower bound of all plans.
  // May be empty, which means 0.
  std::vector<std::int64_t> overlap_multipliers;
  // The restriction: the remaining choices, for a network of the identity of
  // this one.
  ChoicesLeft left;
};
// Returns the identity of the network that create() builds.
NetworkIdentity identity_of(const PlanProblem& problem,
                            const NetworkOptions& options);
inline constexpr std::int64_t kOverlapMultiplierUnit =
    1024;  // a multiplier of 1

class PlanNetwork {
 public:
  // Builds the structure of the network. It has no prices yet. `problem` must
  // outlive the network.
  PlanNetwork(const PlanProblem& problem, const NetworkOptions& options);
  // Returns a network with prices. Errors: those of price().
  static Result<PlanNetwork> create(const PlanProblem& problem,
                                    const NetworkOptions& options);

  // Returns whether price() accepts the options: those of a network with the
  // same identity and the same `most_uncounted`.
  bool can_price(const NetworkOptions& options) const;
  // Gives the network these prices, and the restriction, reserved bytes and
  // limit of the options. The result equals the network that create() builds.
  // Precondition: can_price(options). Errors: kProblemTooLarge (more bytes than
  // the solver counts in), kProblemValue (a limit below zero). The network is
  // then as before.
  Result<void> price(const NetworkOptions& options);

  const PlanProblem& problem() const { return problem_; }
  // Precondition: the network has prices.
  const solver::Problem& network() const { return *network_; }
  std::span<const LiveInterval> live_intervals(PlanBufferId buffer) const {
    return structure_.live_intervals[buffer.index()];
  }
  std::size_t num_variables() const { return structure_.variables.size(); }
  solver::VariableId variable(PlanVariableId id) const {
    return structure_.variable[id.index()];
  }
  // Returns the choices, one for each variable of network(), as an assignment
  // of it.
  NetworkAssignment assignment(solver::Assignment choices) const;
  // Returns the choices of an assignment of this network. InternalError if the
  // assignment belongs to another.
  const solver::Assignment& choices(const NetworkAssignment& assignment) const;
  PlanAssignment decode(const NetworkAssignment& decoded) const;

  // Gives the network the prices and the restriction of the options, and solves
  // it within the rest of the budget. It keeps nothing of the result: the
  // caller keeps the best plan (plan_incumbent.h). Precondition:
  // can_price(options).
  SolvedNetwork solve(const NetworkOptions& options, const Budget& budget,
                      const NetworkGoals& goals = {});

  // Gives the network the prices and the restriction of the options, and finds
  // the part of it that may cost less than `target`, by messages alone
  // (solver/possible_choices.h). It starts from `messages`, and stores its own
  // there. Precondition: can_price(options).
  PossiblePart possible_part(const NetworkOptions& options, std::int64_t target,
                             const Budget& budget, solver::Messages& messages);
  // The network must outlive the result.
  ChoiceExcess choice_excess() const { return {problem_, structure_}; }
  // Returns the number of entries of the tables of all edges.
  std::uint64_t num_entries() const;

 private:
  std::vector<std::int64_t> costs_of(const PlanVariable& variable,
                                     const NetworkOptions& options) const;
  std::vector<std::int64_t> costs_of(const NetworkVariable& variable,
                                     const NetworkOptions& options) const;
  void add_variables(const NetworkOptions& options,
                     solver::ProblemBuilder& builder) const;
  // By table of the structure that has no price, and by the number of edges
  // that an edge stands for: the table of the network.
  using Unpriced =
      std::map<std::pair<std::size_t, std::int64_t>, solver::TableId>;
  Unpriced add_edges(const NetworkOptions& options,
                     solver::ProblemBuilder& builder) const;
  void add_memory(const NetworkOptions& options,
                  solver::ProblemBuilder& builder);

  const PlanProblem& problem_;
  std::optional<std::int64_t> most_uncounted_;
  NetworkStructure structure_;
  std::shared_ptr<const NetworkVariables> variables_;
  // The tables of `network_` that have no price. It has the only copy of their
  // entries.
  Unpriced unpriced_;
  std::optional<TellingSlots> telling_slots_;  // if the network counts memory
  std::optional<solver::Problem> network_;
};

// Returns the solver's options with the rest of the budget, and with the
// threads, the seed and the switches of the problem's options.
solver::SolveOptions solver_options(const PlanProblem& problem,
                                    const Budget& budget);

}  // namespace shardprop

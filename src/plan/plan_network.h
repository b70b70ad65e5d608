// A plan problem as a cost function network, and its solutions as assignments.
//
// It has the variables of the plan problem, with their own choices, and one for
// each stretch of a storage's life in which what is held of it is a choice of
// its own: a segment of uses, and, where memory counts, the pause between two
// segments. An edge leads from what is held to each use, and
// from one stretch to the next; a lone last use hangs on what was held before.
//
// Memory is counted from below: storages and copies while they are held, but
// not what a redistribution takes beside its source while it runs, nor copies
// made for a single use within a segment. evaluate() counts all.
#pragma once

#include "plan/live_interval.h"
#include "plan/network_assignment.h"
#include "plan/plan_assignment.h"

#include <shardprop/solver/problem.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace shardprop {

struct NetworkOptions {
  // Bytes a rank; without it memory is left out.
  std::optional<std::int64_t> memory_limit;
  // By slot: bytes to keep free beyond what the network counts; may be empty.
  std::vector<std::int64_t> reserved;
  // Bytes that a redistribution may take beside what the network counts; more
  // is forbidden. Without it all may.
  std::optional<std::int64_t> most_uncounted;
  // By slot: what each nanosecond costs that may hide there, and that each
  // nanosecond of compute there is worth, in parts of kHiddenPriceUnit, from
  // none to all of it. With one price for each window no assignment costs less
  // than the cheapest of the network. May be empty: nothing.
  std::vector<std::int64_t> hidden_prices;
  // Belongs to a network of the identity of this one.
  ChoicesLeft left;
};
// The identity of the network that create() builds.
NetworkIdentity identity_of(const PlanProblem& problem,
                            const NetworkOptions& options);
inline constexpr std::int64_t kHiddenPriceUnit = 1024;

class PlanNetwork {
 public:
  // `problem` must outlive the network. Errors: kProblemTooLarge (more bytes
  // than the solver counts in), kProblemValue (a limit below zero).
  static Result<PlanNetwork> create(const PlanProblem& problem,
                                    const NetworkOptions& options);

  const solver::Problem& network() const { return *network_; }
  std::span<const Stretch> stretches(PlanStorageId storage) const {
    return stretches_[storage.index()];
  }
  solver::VariableId variable(PlanVariableId id) const {
    return variable_[id.index()];
  }
  // The choices, one for each variable of network(), as an assignment of it.
  NetworkAssignment assignment(solver::Assignment choices) const;
  // The choices of an assignment of this network. InternalError if the
  // assignment belongs to another.
  const solver::Assignment& choices(const NetworkAssignment& assignment) const;
  PlanAssignment decode(const NetworkAssignment& decoded) const;

 private:
  explicit PlanNetwork(const PlanProblem& problem) : problem_(problem) {}

  const PlanProblem& problem_;
  std::vector<std::vector<Stretch>> stretches_;
  std::vector<solver::VariableId> variable_;  // by PlanVariableId
  std::shared_ptr<const NetworkVariables> variables_;
  std::optional<solver::Problem> network_;
};

}  // namespace shardprop

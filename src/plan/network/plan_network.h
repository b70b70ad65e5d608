// PlanNetwork states a plan problem as a cost function network, and reads its
// solutions as assignments.
//
// The network has the variables of the plan problem, with their own choices,
// and one variable for each live interval of a buffer. The choices of a live
// interval are the sets of layouts in which the buffer may be cached in it. An
// interval is a segment of uses or, if memory counts, a pause before a segment.
//
// An edge leads from the cached layouts to each use, and from one live interval
// to the next. A last use that is alone in its segment has no interval of its
// own. Its edge leads from the interval before it, or from the producer if
// there is none.
//
// The network counts a lower bound of the memory: buffers and copies while they
// are kept. It does not count the scratch of a redistribution, nor copies that
// are made for a single use within a segment. evaluate() counts everything.
#pragma once

#include "plan/evaluate/plan_assignment.h"
#include "plan/network/live_interval.h"
#include "plan/network/network_assignment.h"

#include <shardprop/solver/problem.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace shardprop {

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
  // By slot: the overlap multiplier, in parts of kOverlapMultiplierUnit, from 0
  // to all of it. Each overlappable nanosecond costs it, and each nanosecond of
  // compute earns it. If all slots of a window have the same multiplier, the
  // cheapest assignment of the network is a lower bound of all plans. May be
  // empty, which means 0.
  std::vector<std::int64_t> overlap_multipliers;
  // The remaining choices, for a network of the identity of this one.
  ChoicesLeft left;
};
// Returns the identity of the network that create() builds.
NetworkIdentity identity_of(const PlanProblem& problem,
                            const NetworkOptions& options);
inline constexpr std::int64_t kOverlapMultiplierUnit =
    1024;  // a multiplier of 1

class PlanNetwork {
 public:
  // `problem` must outlive the network. Errors: kProblemTooLarge (more bytes
  // than the solver counts in), kProblemValue (a limit below zero).
  static Result<PlanNetwork> create(const PlanProblem& problem,
                                    const NetworkOptions& options);

  const solver::Problem& network() const { return *network_; }
  std::span<const LiveInterval> live_intervals(PlanBufferId buffer) const {
    return live_intervals_[buffer.index()];
  }
  solver::VariableId variable(PlanVariableId id) const {
    return variable_[id.index()];
  }
  // Returns the choices, one for each variable of network(), as an assignment
  // of it.
  NetworkAssignment assignment(solver::Assignment choices) const;
  // Returns the choices of an assignment of this network. InternalError if the
  // assignment belongs to another.
  const solver::Assignment& choices(const NetworkAssignment& assignment) const;
  PlanAssignment decode(const NetworkAssignment& decoded) const;

 private:
  explicit PlanNetwork(const PlanProblem& problem) : problem_(problem) {}

  const PlanProblem& problem_;
  std::vector<std::vector<LiveInterval>> live_intervals_;
  std::vector<solver::VariableId> variable_;  // by PlanVariableId
  std::shared_ptr<const NetworkVariables> variables_;
  std::optional<solver::Problem> network_;
};

}  // namespace shardprop

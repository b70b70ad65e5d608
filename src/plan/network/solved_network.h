// SolvedNetwork is the result of PlanNetwork::solve(), and NetworkGoals are its
// goals.
#pragma once

#include "base/budget.h"
#include "plan/evaluate/plan_assignment.h"
#include "plan/network/network_assignment.h"

#include <shardprop/solver/solve.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace shardprop {

// SolvedNetwork is the end of the solve of one network. It converts to whether
// there is a solution.
struct SolvedNetwork {
  enum class End : std::uint8_t {
    kSolved,
    kInfeasible,  // proven: the network has no solution
    kStopped,     // no solution was found within time and work
    kFailed,      // the network could not be built: `failure`
  };
  End end = End::kStopped;
  // The solution, its plan and the figures of the plan, if solved. The plan may
  // exceed the memory limit, since the network counts a lower bound.
  NetworkAssignment assignment;
  PlanAssignment plan;
  PlanEvaluation evaluation;
  std::int64_t bound = 0;  // no assignment of the network costs less
  std::optional<StoppedBy> stopped_by;
  std::optional<solver::Conflict> conflict;  // if infeasible and asked for
  // Why the network was not built, or why the solve ended before its limits.
  std::optional<Error> failure;
  std::uint64_t work = 0;             // in table entries
  std::vector<Procedure> procedures;  // those of the solver

  explicit operator bool() const { return end == End::kSolved; }
  bool is_infeasible() const { return end == End::kInfeasible; }
};

// PossiblePart is the part of a network that may cost less than a target.
struct PossiblePart {
  // No assignment of the network costs less than this and the target.
  std::int64_t bound = 0;
  bool is_empty = false;  // proven: no assignment costs less than the target
  // Unless empty: the remaining choices, and the choices to which the messages
  // lead.
  ChoicesLeft left;
  NetworkAssignment decoded;
  // The plan of `decoded` and its figures; null if the network forbids some of
  // its choices together.
  std::optional<PlanAssignment> plan;
  PlanEvaluation evaluation;
  std::uint64_t work = 0;        // in table entries
  std::optional<Error> failure;  // why the network was not built
};

// NetworkGoals are the goals, starting points and callbacks of one solve.
struct NetworkGoals {
  double enough_gap = 0;  // relative, see solver::SolveOptions
  std::optional<std::int64_t> enough_cost;
  std::optional<std::int64_t> enough_bound;
  // If true, only the lower bound is raised: no solution is looked for.
  bool bounds_only = false;
  bool explains = false;  // an infeasible network by `conflict`
  // Initial assignments of networks with this identity.
  std::span<const NetworkAssignment> known;
  // The solve starts from these messages and stores its own in them.
  solver::Messages* messages = nullptr;
  std::function<void(const solver::Progress&)> progress;
  // Returns whether to continue, as solver::SolveOptions::go_on.
  std::function<bool(const NetworkAssignment&, double spent)> go_on;
};

}  // namespace shardprop

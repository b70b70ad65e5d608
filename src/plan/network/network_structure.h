// NetworkStructure is the part of a plan's network that no price changes: its
// variables, live intervals, edges, and tables before they are priced.
#pragma once

#include "plan/network/live_interval.h"
#include "plan/network/network_assignment.h"
#include "plan/network/transfer_tables.h"

#include <shardprop/solver/problem.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace shardprop {

// NetworkVariable is a variable of the plan problem, a live interval, the bytes
// of an accumulator, or the reserve. It may stand for several of the same kind
// (shared_variables.h).
struct NetworkVariable {
  std::int64_t slot = 0;  // of the schedule
  std::size_t num_choices = 0;
  // The variables of the plan problem, which choose alike. Empty for the other
  // kinds.
  std::vector<PlanVariableId> of_problem;
};

// NetworkEdge is the edges with the same variables and table.
struct NetworkEdge {
  // Share is the number of edges whose transfers are in one overlap window, or in
  // none.
  struct Share {
    std::optional<std::size_t> window;
    std::int64_t count = 1;
  };
  solver::VariableId a;
  solver::VariableId b;
  std::size_t table = 0;  // index into NetworkStructure::tables
  std::vector<Share> shares;
};

// NetworkAccumulator is the memory of a gradient that is accumulated unreduced,
// before the slot in which it is produced.
struct NetworkAccumulator {
  solver::VariableId variable;
  std::int64_t produced_at = 0;
  std::vector<std::int64_t> bytes;  // by choice
};

struct NetworkStructure {
  std::vector<std::vector<LiveInterval>> live_intervals;  // by buffer
  std::vector<solver::VariableId> variable;               // by PlanVariableId
  std::vector<NetworkVariable> variables;
  std::vector<NetworkTable> tables;
  std::vector<NetworkEdge> edges;
  std::vector<NetworkAccumulator> accumulators;
  // The variable of the bytes that each slot keeps free, if there is one.
  std::optional<solver::VariableId> reserve;
};

// Returns the structure of the networks of this identity, without shared
// variables. `most_uncounted` is
// that of NetworkOptions.
NetworkStructure structure_of(const NetworkIdentity& identity,
                              std::optional<std::int64_t> most_uncounted);

}  // namespace shardprop

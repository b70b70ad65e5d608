// `evaluate` checks an assignment independently: it uses only the problem, not
// the passes, bounds or searches that found the assignment.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/solver/cost.h>
#include <shardprop/solver/problem.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace shardprop::solver {

using Assignment = std::vector<std::uint32_t>;  // one choice per variable

// `Evaluation` is the cost of an assignment and the constraints that it breaks.
struct Evaluation {
  Int128 cost = 0;                    // sum over entries that are not forbidden
  std::vector<VariableId> forbidden;  // variables at a forbidden choice
  std::vector<EdgeId> forbidden_edges;  // edges at a forbidden entry
  std::vector<Pin> broken_pins;
  Int128 peak_bytes = 0;
  std::int64_t peak_time = 0;  // first time of the peak
  bool over_limit = false;     // peak_bytes exceeds the limit

  bool feasible() const {
    return forbidden.empty() && forbidden_edges.empty() &&
           broken_pins.empty() && !over_limit;
  }
};

// Evaluates an assignment. Error: kAssignmentShape if it does not fit the
// problem.
Result<Evaluation> evaluate(const Problem& problem,
                            std::span<const std::uint32_t> assignment);

}  // namespace shardprop::solver

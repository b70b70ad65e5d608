// reason_of() explains why a plan has a copy, and what the plan would cost
// without it.
#pragma once

#include "plan/explain/alternatives.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardprop {

struct CopyReason {
  std::string text;
  std::optional<std::int64_t> alternative_nanoseconds;
};

// `users` lists the users of all copies.
CopyReason reason_of(const PlanProblem& problem, const PlanAssignment& plan,
                     std::size_t copy, const std::vector<CopyUsers>& users,
                     const AlternativeCosts& alternatives);

}  // namespace shardprop

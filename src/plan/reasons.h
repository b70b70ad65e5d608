// Why a copy is there, and what going without it would cost.
#pragma once

#include "plan/alternatives.h"

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

// `users` are those of all copies.
CopyReason reason_of(const PlanProblem& problem, const PlanAssignment& plan,
                     std::size_t copy, const std::vector<CopyUsers>& users,
                     const AlternativeCosts& alternatives);

}  // namespace shardprop

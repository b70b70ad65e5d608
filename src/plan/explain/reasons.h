// reason_of() explains why a plan has a copy, and what the plan would cost
// without it.
#pragma once

#include "plan/explain/alternatives.h"

#include <shardprop/plan/copy_reason.h>

#include <cstddef>
#include <vector>

namespace shardprop {

// `users` lists the users of all copies.
CopyReason reason_of(const PlanProblem& problem, const PlanAssignment& plan,
                     std::size_t copy, const std::vector<CopyUsers>& users,
                     const AlternativeCosts& alternatives);

}  // namespace shardprop

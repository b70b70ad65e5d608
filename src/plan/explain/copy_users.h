// CopyUsers lists what reads a copy of a plan.
#pragma once

#include "plan/evaluate/plan_assignment.h"

#include <cstddef>
#include <vector>

namespace shardprop {

// `CopyUsers` lists the uses that read a copy and the copies that are made from
// it.
struct CopyUsers {
  std::vector<BufferUse> uses;
  std::vector<std::size_t> copies;
};

// Returns the users of every copy, by copy.
std::vector<CopyUsers> users_of_copies(const PlanProblem& problem,
                                       const PlanAssignment& plan);

}  // namespace shardprop

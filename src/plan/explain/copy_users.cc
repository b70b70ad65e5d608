#include "plan/explain/copy_users.h"

namespace shardprop {

std::vector<CopyUsers> users_of_copies(const PlanProblem& problem,
                                       const PlanAssignment& plan) {
  std::vector<CopyUsers> users(plan.copies.size());
  for (std::size_t s = 0; s < plan.read.size(); ++s) {
    for (std::size_t u = 0; u < plan.read[s].size(); ++u) {
      if (const auto& copy = plan.read[s][u]) {
        users[*copy].uses.push_back(problem.buffers()[s].uses[u]);
      }
    }
  }
  for (std::size_t c = 0; c < plan.copies.size(); ++c) {
    if (const auto& source = plan.copies[c].source) {
      users[*source].copies.push_back(c);
    }
  }
  return users;
}

}  // namespace shardprop

#include <shardprop/plan/plan_space.h>

namespace shardprop {

std::string to_string(const PlanSpace& space) {
  if (!space.most_runs) return {};
  if (*space.most_runs == 0) return "all replicated";
  if (*space.most_runs == 1) return "mesh dims in one run";
  return "mesh dims in at most " + std::to_string(*space.most_runs) + " runs";
}

}  // namespace shardprop

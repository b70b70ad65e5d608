#include <shardprop/plan/make_plan.h>

#include "base/try.h"

#include <chrono>

namespace shardprop {

Result<Plan> make_plan(const Graph& graph, const DeviceMesh& mesh,
                       const Topology& topology, const RuleBook& rules,
                       const OpRegistry& registry, const PlanOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  SP_ASSIGN(
      const PlanProblem problem,
      PlanProblem::create(graph, mesh, topology, rules, registry, options));
  Plan plan = assemble_plan(problem, choose(problem));
  plan.solve_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return plan;
}

}  // namespace shardprop

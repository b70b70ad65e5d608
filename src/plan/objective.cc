// The cost of an assignment by its definition; shares nothing with the search.
#include <shardprop/plan/choose.h>

#include <set>

namespace shardprop {

std::int64_t objective_nanoseconds(const PlanProblem& problem,
                                   std::span<const std::uint32_t> choices) {
  std::int64_t total = 0;
  for (std::size_t v = 0; v < choices.size(); ++v) {
    total += problem.variables()[v].choices->costs[choices[v]];
  }
  for (const Value& value : problem.graph().values()) {
    const PlanValue& planned = problem.value(value.id);
    const auto layout_at = [&](PlanVariableId variable, std::size_t operand) {
      return problem.variable(variable).choices->layout(
          choices[variable.index()], operand);
    };
    const LayoutId made = layout_at(planned.maker, planned.operand);
    std::set<LayoutId> wanted;
    for (const PlanUse& use : planned.uses) {
      wanted.insert(layout_at(use.variable, use.operand));
    }
    for (const LayoutId layout : wanted) {
      total += problem.move_nanoseconds(value.id, made, layout);
    }
  }
  return total;
}

}  // namespace shardprop

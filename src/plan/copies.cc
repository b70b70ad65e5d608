#include "plan/copies.h"

#include <algorithm>
#include <tuple>

namespace shardprop {

LayoutId layout_at(const PlanProblem& problem,
                   std::span<const std::uint32_t> choices,
                   PlanVariableId variable, std::size_t operand) {
  return problem.variable(variable).choices->layout(choices[variable.index()],
                                                    operand);
}

std::vector<NeededCopy> needed_copies(const PlanProblem& problem,
                                      std::span<const std::uint32_t> choices) {
  const auto end = static_cast<std::int64_t>(problem.graph().nodes().size());
  std::vector<NeededCopy> copies;
  for (const Value& value : problem.graph().values()) {
    const PlanValue& planned = problem.value(value.id);
    const LayoutId made =
        layout_at(problem, choices, planned.maker, planned.operand);
    const std::size_t first = copies.size();
    for (const PlanUse& use : planned.uses) {
      const LayoutId wanted =
          layout_at(problem, choices, use.variable, use.operand);
      if (wanted == made) continue;
      const PlanVariable& user = problem.variable(use.variable);
      const bool at_node = user.kind == PlanVariable::Kind::kOperator;
      const std::int64_t after_made =
          value.is_input()
              ? 0
              : static_cast<std::int64_t>(value.producer.index()) + 1;
      const std::int64_t when =
          at_node ? static_cast<std::int64_t>(user.index) : after_made;
      const std::int64_t until = at_node ? when : end;
      auto copy = std::find_if(
          copies.begin() + static_cast<std::ptrdiff_t>(first), copies.end(),
          [&](const NeededCopy& c) { return c.dst == wanted; });
      if (copy == copies.end()) {
        copies.push_back({value.id, made, wanted, when, until, {}});
        copy = copies.end() - 1;
      }
      copy->made_at = std::min(copy->made_at, when);
      copy->last_use = std::max(copy->last_use, until);
      copy->users.push_back(use);
    }
  }
  std::stable_sort(copies.begin(), copies.end(),
                   [](const NeededCopy& a, const NeededCopy& b) {
                     return a.made_at < b.made_at;
                   });
  return copies;
}

}  // namespace shardprop

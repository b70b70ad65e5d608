#include "plan/problem/equal_choices.h"

#include "base/union_find.h"
#include "plan/problem/counterparts.h"
#include "plan/problem/problem_data.h"

#include <algorithm>
#include <cstddef>

namespace shardprop {
EqualChoices::EqualChoices(const ProblemData& data) {
  UnionFind groups(data.variables.size());
  bool has_group = false;
  // The first variable of a group stands for it.
  const auto join = [&](PlanVariableId a, PlanVariableId b) {
    const auto [first, other] =
        std::minmax({groups.root(a.index()), groups.root(b.index())});
    if (first == other) return;
    groups.join(other, first);
    has_group = true;
  };
  if (data.options.layers == Layers::kAlike) {
    const Counterparts counterparts(data);
    const std::vector<PlanVariableId> firsts = counterparts.firsts();
    for (std::size_t v = 0; v < firsts.size(); ++v) {
      join(firsts[v], PlanVariableId(v));
    }
    if (has_group) slots_ = counterparts.slots();
  }
  for (const Node& node : data.graph.nodes()) {
    if (!node.runs_again()) continue;
    const PlanVariableId first = data.of_node[node.second_run_of.index()];
    const PlanVariableId second = data.of_node[node.id.index()];
    // A view has no variable.
    if (!first.valid() || !second.valid()) continue;
    if (have_same_choices(*data.variables[first.index()].choices,
                          *data.variables[second.index()].choices)) {
      join(first, second);
    }
  }
  if (!has_group) return;
  for (std::size_t v = 0; v < groups.size(); ++v) {
    first_.push_back(PlanVariableId(groups.root(v)));
  }
}

bool EqualChoices::are_alike(std::span<const std::uint32_t> choices) const {
  for (std::size_t v = 0; v < first_.size(); ++v) {
    if (choices[v] != choices[first_[v].index()]) return false;
  }
  return true;
}

}  // namespace shardprop

#include "plan/problem/constraints/second_run_choices.h"

#include "base/try.h"
#include "plan/problem/choices/choice_subsets.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using Choices = std::shared_ptr<const ChoiceSet>;

// Returns the strategy and the layout of each operand as numbers.
std::vector<std::int64_t> key_of(const ChoiceSet& set, std::size_t choice) {
  std::vector<std::int64_t> key;
  const PlacementStrategy& strategy = set.op.strategies[choice];
  for (const auto factor : strategy.assignment) key.push_back(factor);
  key.push_back(static_cast<std::int64_t>(strategy.shardings.index()));
  for (std::size_t o = 0; o < set.layouts.size(); ++o) {
    key.push_back(static_cast<std::int64_t>(set.layout(choice, o).index()));
  }
  return key;
}

// Returns the choices of `set` that `other` has, in the order of `other`.
Choices common(const ChoiceSet& set, const ChoiceSet& other) {
  std::map<std::vector<std::int64_t>, std::uint32_t> own;
  for (std::uint32_t c = 0; c < set.size(); ++c) own.emplace(key_of(set, c), c);
  std::vector<std::uint32_t> kept;
  for (std::size_t c = 0; c < other.size(); ++c) {
    const auto found = own.find(key_of(other, c));
    if (found != own.end()) kept.push_back(found->second);
  }
  return without_spare_layouts(with_choices(set, kept));
}

Error conflict(const Graph& graph, const Node& first, const Node& second) {
  return Error{
      ErrorCode::kPinConflict,
      "pins leave `" + first.name + "` and `" + second.name +
          "`, which runs it again, no common strategy",
      second.module_path,
      {first.name + ": " + first.op_name() + " in `" + graph.name() + "`"},
      "pin only one of the two runs, or both to the same layouts"};
}

class BothRuns {
 public:
  explicit BothRuns(ProblemData& data) : data_(data) {}

  // Leaves `of` the choices that it shares with `other`.
  Result<void> keep_common(const Node& of, const Node& other) {
    const PlanVariableId changed = data_.of_node[of.id.index()];
    const PlanVariableId kept = data_.of_node[other.id.index()];
    // A view has no variable.
    if (!changed.valid() || !kept.valid()) return {};
    Choices& own = data_.variables[changed.index()].choices;
    const Choices& others = data_.variables[kept.index()].choices;
    if (have_same_choices(*own, *others)) return {};
    Choices& found = known_[{own, others}];
    if (!found) found = common(*own, *others);
    if (found->size() == 0) {
      if (data_.options.pins.empty()) return {};
      return of.runs_again() ? fail(conflict(data_.graph, other, of))
                             : fail(conflict(data_.graph, of, other));
    }
    own = found;
    data_.choices_of_node[of.id.index()] = found;
    return {};
  }

 private:
  ProblemData& data_;
  // Equal sets remain one set, so that repeated layers are computed once.
  std::map<std::pair<Choices, Choices>, Choices> known_;
};

}  // namespace

Result<void> keep_choices_of_both_runs(ProblemData& data) {
  BothRuns runs(data);
  const Graph& graph = data.graph;
  for (const Node& node : graph.nodes()) {
    if (!node.runs_again()) continue;
    SP_CHECK(runs.keep_common(graph.node(node.second_run_of), node));
  }
  // By now the first run has the choices of all of them.
  for (const Node& node : graph.nodes()) {
    if (!node.runs_again()) continue;
    SP_CHECK(runs.keep_common(node, graph.node(node.second_run_of)));
  }
  return {};
}

}  // namespace shardprop

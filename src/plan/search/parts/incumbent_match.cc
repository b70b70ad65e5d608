#include "plan/search/parts/incumbent_match.h"

#include "base/index.h"
#include "plan/network/plan_network.h"

#include <shardprop/placement/tensor_spec.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

// One wish an operand: the layout of the plan, or null if the plan names none
// that the tensor can have.
using WishedLayouts = std::vector<std::optional<Layout>>;

class IncumbentMatcher {
 public:
  IncumbentMatcher(const PlanProblem& problem, const Plan& plan)
      : problem_(problem), graph_(problem.graph()), plan_(plan) {
    for (const PlannedNode& node : plan.nodes) nodes_.emplace(node.name, &node);
    for (const PlannedValue& value : plan.values) {
      values_.emplace(value.name, &value);
    }
    for (const PlannedOutput& output : plan.outputs) {
      outputs_.emplace(output.value.from, &output);
    }
  }

  IncumbentMatch run() {
    IncumbentMatch out{no_restriction(problem_), multipliers(), counts()};
    if (!out.start.is_usable()) return out;
    std::vector<bool> is_known(problem_.variables().size(), false);
    for (std::size_t v = 0; v < is_known.size(); ++v) {
      out.kept.left[v] = kept(problem_.variables()[v]);
      is_known[v] = !out.kept.left[v].empty();
    }
    free_neighbours(is_known, out.kept);
    return out;
  }

 private:
  std::vector<std::int64_t> multipliers() const {
    const std::vector<std::int64_t>& all = plan_.overlap_multipliers;
    const bool fits =
        all.size() == problem_.num_windows() &&
        std::all_of(all.begin(), all.end(), [](std::int64_t one) {
          return one >= 0 && one <= kOverlapMultiplierUnit;
        });
    return fits ? all : std::vector<std::int64_t>();
  }

  EarlierPlanNote counts() const {
    EarlierPlanNote out;
    out.graph = plan_.graph_name;
    out.has_same_mesh_ndim = plan_.mesh.ndim() == problem_.mesh().ndim();
    out.operators = static_cast<std::int64_t>(graph_.nodes().size());
    for (const Node& node : graph_.nodes()) {
      out.matched_operators += planned(node) != nullptr ? 1 : 0;
    }
    out.tensors = static_cast<std::int64_t>(graph_.inputs().size());
    for (const GraphInput& input : graph_.inputs()) {
      out.matched_tensors += planned(input) != nullptr ? 1 : 0;
    }
    return out;
  }

  const PlannedNode* planned(const Node& node) const {
    const auto found = nodes_.find(node.name);
    return found != nodes_.end() && found->second->op == node.op_name()
               ? found->second
               : nullptr;
  }
  const PlannedValue* planned(const GraphInput& input) const {
    const auto found = values_.find(graph_.value(input.value).display_name());
    return found != values_.end() && found->second->kind == input.kind
               ? found->second
               : nullptr;
  }

  // Returns the choices that the plan made; empty if it made none of them.
  std::vector<std::uint32_t> kept(const PlanVariable& variable) const {
    switch (variable.kind) {
      case PlanVariable::Kind::kOperator:
        return kept_operator(variable);
      case PlanVariable::Kind::kInput:
        return kept_input(variable);
      case PlanVariable::Kind::kOutput:
        return kept_output(variable);
    }
    return {};
  }

  std::vector<std::uint32_t> kept_operator(const PlanVariable& variable) const {
    const Node& node = graph_.nodes()[variable.index];
    const PlannedNode* plan = planned(node);
    if (plan == nullptr || plan->inputs.size() != node.inputs.size() ||
        plan->outputs.size() != node.outputs.size()) {
      return {};
    }
    WishedLayouts wishes;
    for (std::size_t u = 0; u < node.inputs.size(); ++u) {
      wishes.push_back(fitting(plan->inputs[u].layout, node.inputs[u]));
    }
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      wishes.push_back(
          fitting(plan->outputs[o].tensor.layout, node.outputs[o]));
    }
    const ChoiceSet& set = *variable.choices;
    std::vector<std::uint32_t> out = with_layouts(set, wishes);
    if (!out.empty() || plan->assignment.empty()) return out;
    for (std::uint32_t c = 0; c < set.size(); ++c) {
      if (set.op.strategies[c].assignment == plan->assignment) out.push_back(c);
    }
    return out;
  }

  std::vector<std::uint32_t> kept_input(const PlanVariable& variable) const {
    const PlannedValue* plan = planned(graph_.inputs()[variable.index]);
    if (plan == nullptr) return {};
    const ChoiceSet& set = *variable.choices;
    const ValueId value = variable.makes[0];
    WishedLayouts wishes(set.layouts.size());
    wishes.back() = fitting(plan->tensor.layout, value);
    if (!wishes.back()) return {};
    std::vector<std::uint32_t> out = with_layouts(set, wishes);
    const auto state =
        fitting(plan->state_layout.value_or(plan->tensor.layout), value);
    keep_if(out, [&](std::uint32_t c) {
      return set.state_layouts.empty() ||
             (state && problem_.layouts()[set.state_layouts[c]] == *state);
    });
    keep_if(out, [&](std::uint32_t c) {
      return problem_.is_reduced_late(variable, c) == plan->reduced_once;
    });
    return out;
  }

  std::vector<std::uint32_t> kept_output(const PlanVariable& variable) const {
    const ValueId value = variable.uses[0];
    const auto plan = outputs_.find(graph_.value(value).display_name());
    if (plan == outputs_.end()) return {};
    const auto wish = fitting(plan->second->value.layout, value);
    return wish ? with_layouts(*variable.choices, {wish})
                : std::vector<std::uint32_t>();
  }

  // Drops the choices that are not wished, unless none is.
  template <class IsWished>
  static void keep_if(std::vector<std::uint32_t>& choices,
                      const IsWished& is_wished) {
    std::vector<std::uint32_t> wished;
    std::copy_if(choices.begin(), choices.end(), std::back_inserter(wished),
                 is_wished);
    if (!wished.empty()) choices = std::move(wished);
  }

  // Returns the layout in canonical form; null if the value cannot have it.
  std::optional<Layout> fitting(const Layout& layout, ValueId value) const {
    const DeviceMesh& mesh = problem_.mesh();
    const TensorMeta& meta = graph_.value(value).meta;
    if (!check_layout(layout, mesh, meta)) return std::nullopt;
    return canonical(layout, mesh, meta.shape());
  }

  // Returns the choices in which every operand has its wish.
  std::vector<std::uint32_t> with_layouts(const ChoiceSet& set,
                                          const WishedLayouts& wishes) const {
    std::vector<std::pair<std::size_t, std::size_t>> picks;  // by operand
    for (std::size_t o = 0; o < wishes.size(); ++o) {
      if (!wishes[o]) continue;
      const std::vector<LayoutId>& known = set.layouts[o];
      const auto at =
          std::find_if(known.begin(), known.end(), [&](LayoutId id) {
            return problem_.layouts()[id] == *wishes[o];
          });
      if (at == known.end()) return {};
      picks.emplace_back(o, index(at - known.begin()));
    }
    std::vector<std::uint32_t> out;
    for (std::uint32_t c = 0; c < set.size(); ++c) {
      if (std::all_of(picks.begin(), picks.end(), [&](const auto& pick) {
            return set.pick(c, pick.first) == pick.second;
          })) {
        out.push_back(c);
      }
    }
    return out;
  }

  // Frees the variables that share a buffer with one that the plan does not
  // know, so that they can follow its choice.
  void free_neighbours(const std::vector<bool>& is_known,
                       Restriction& kept) const {
    for (const PlanBuffer& buffer : problem_.buffers()) {
      const auto is_new = [&](PlanVariableId v) { return !is_known[v.index()]; };
      const bool is_next_to_new =
          is_new(buffer.producer) ||
          std::any_of(buffer.uses.begin(), buffer.uses.end(),
                      [&](const BufferUse& use) { return is_new(use.variable); });
      if (!is_next_to_new) continue;
      kept.left[buffer.producer.index()].clear();
      for (const BufferUse& use : buffer.uses) {
        kept.left[use.variable.index()].clear();
      }
    }
  }

  const PlanProblem& problem_;
  const Graph& graph_;
  const Plan& plan_;
  std::unordered_map<std::string_view, const PlannedNode*> nodes_;
  std::unordered_map<std::string_view, const PlannedValue*> values_;
  std::unordered_map<std::string_view, const PlannedOutput*> outputs_;
};

}  // namespace

IncumbentMatch match_incumbent(const PlanProblem& problem,
                               const Plan& incumbent) {
  return IncumbentMatcher(problem, incumbent).run();
}

}  // namespace shardprop

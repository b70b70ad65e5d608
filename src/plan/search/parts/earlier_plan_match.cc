#include "plan/search/parts/earlier_plan_match.h"

#include "base/index.h"
#include "plan/network/plan_network.h"
#include "plan/problem/pin_match.h"
#include "plan/tuning.h"

#include <shardprop/placement/tensor_spec.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

// One wish an operand: the layout of the plan, or null if the plan names none
// that the tensor can have.
using WishedLayouts = std::vector<std::optional<Layout>>;

class EarlierPlanMatcher {
 public:
  EarlierPlanMatcher(const PlanProblem& problem, const Plan& plan)
      : problem_(problem), graph_(problem.graph()), plan_(plan) {
    for (const PlannedNode& node : plan.nodes) nodes_.emplace(node.name, &node);
    for (const PlannedValue& value : plan.values) {
      values_.emplace(value.name, &value);
    }
    for (const PlannedOutput& output : plan.outputs) {
      outputs_.emplace(output.value.from, &output);
    }
    const std::vector<Pin>& pins = problem.options().pins;
    for (const PlanPin& planned : plan.pins) {
      if (std::find(pins.begin(), pins.end(), planned.pin) == pins.end()) {
        dropped_.push_back(planned.pin);
      }
    }
  }

  EarlierPlanMatch run() {
    EarlierPlanMatch out{no_restriction(problem_), {}, multipliers(), counts()};
    if (!out.start.is_usable()) return out;
    for (std::size_t v = 0; v < problem_.variables().size(); ++v) {
      out.kept.left[v] = kept(problem_.variables()[v]);
      out.is_new.push_back(out.kept.left[v].empty() ||
                           was_pinned(problem_.variables()[v]));
    }
    return out;
  }

 private:
  std::vector<std::int64_t> multipliers() const {
    const std::vector<std::int64_t>& all = plan_.overlap_multipliers;
    const bool fits = all.size() == problem_.window_loads().size() &&
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

  // Returns whether a pin that the problem does not have pinned the variable in
  // the plan.
  bool was_pinned(const PlanVariable& variable) const {
    return std::any_of(dropped_.begin(), dropped_.end(), [&](const Pin& pin) {
      if (variable.kind == PlanVariable::Kind::kInput) {
        return matches_input(pin, graph_.value(variable.makes[0]));
      }
      if (variable.kind == PlanVariable::Kind::kOutput) return false;
      const Node& node = graph_.nodes()[variable.index];
      return std::any_of(node.outputs.begin(), node.outputs.end(),
                         [&](ValueId result) {
                           return matches_result(pin, node,
                                                 graph_.value(result));
                         }) ||
             std::any_of(node.inputs.begin(), node.inputs.end(),
                         [&](ValueId input) {
                           return graph_.value(input).is_input() &&
                                  matches_use(pin, graph_.value(input), node);
                         });
    });
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
      const auto at = std::find_if(
          known.begin(), known.end(),
          [&](LayoutId id) { return problem_.layouts()[id] == *wishes[o]; });
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

  const PlanProblem& problem_;
  const Graph& graph_;
  const Plan& plan_;
  std::unordered_map<std::string_view, const PlannedNode*> nodes_;
  std::unordered_map<std::string_view, const PlannedValue*> values_;
  std::unordered_map<std::string_view, const PlannedOutput*> outputs_;
  std::vector<Pin> dropped_;  // pins that the plan had and the problem has not
};

// Calls `visit` with each variable that produces or reads the buffer.
template <class Visit>
void for_each_end(const PlanBuffer& buffer, const Visit& visit) {
  visit(buffer.producer.index());
  for (const BufferUse& use : buffer.uses) visit(use.variable.index());
}

}  // namespace

Restriction freed_around(const PlanProblem& problem,
                         const EarlierPlanMatch& match, int hops) {
  Restriction out = match.kept;
  std::vector<bool> is_near = match.is_new;
  for (std::size_t v = 0; v < is_near.size(); ++v) {
    if (is_near[v]) out.left[v].clear();
  }
  for (int hop = 0; hop < hops; ++hop) {
    const std::vector<bool> before = is_near;
    for (const PlanBuffer& buffer : problem.buffers()) {
      bool touches = false;
      for_each_end(buffer,
                   [&](std::size_t v) { touches = touches || before[v]; });
      if (!touches) continue;
      for_each_end(buffer, [&](std::size_t v) {
        is_near[v] = true;
        out.left[v].clear();
      });
    }
  }
  return out;
}

Restriction freed_near(const PlanProblem& problem,
                       const EarlierPlanMatch& match) {
  Restriction out = freed_around(problem, match, 1);
  for (int hops = 2; hops <= tuning::kMostFreedHops; ++hops) {
    Restriction next = freed_around(problem, match, hops);
    if (std::count_if(next.left.begin(), next.left.end(), [](const auto& left) {
          return left.empty();
        }) > tuning::kMostFreedVariables) {
      break;
    }
    out = std::move(next);
  }
  return out;
}

Restriction choices_of_alike(const PlanProblem& problem,
                             const EarlierPlanMatch& match,
                             const PlanAssignment& assignment) {
  std::unordered_map<const ChoiceSet*, std::set<std::uint32_t>> made;
  for (std::size_t v = 0; v < problem.variables().size(); ++v) {
    const std::vector<std::uint32_t>& kept = match.kept.left[v];
    auto& all = made[problem.variables()[v].choices.get()];
    all.insert(kept.begin(), kept.end());
    all.insert(assignment.choices[v]);
  }
  Restriction out = no_restriction(problem);
  for (std::size_t v = 0; v < out.left.size(); ++v) {
    const auto& all = made.at(problem.variables()[v].choices.get());
    out.left[v].assign(all.begin(), all.end());
  }
  return out;
}

EarlierPlanMatch match_earlier_plan(const PlanProblem& problem,
                                    const Plan& earlier) {
  return EarlierPlanMatcher(problem, earlier).run();
}

}  // namespace shardprop

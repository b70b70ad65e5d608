#include "plan/problem/build/input_output_variables.h"

#include "base/try.h"
#include "plan/problem/choices/choice_subsets.h"
#include "plan/problem/choices/given_choices.h"
#include "plan/problem/constraints/recipe_layouts.h"

#include <algorithm>
#include <utility>

namespace shardprop {
namespace {

// Returns whether the output is a gradient or an update, which ends in the
// layout of its input.
bool is_tie(const Graph& graph, const GraphOutput& output) {
  return (output.kind == OutputKind::kGradient ||
          output.kind == OutputKind::kUpdate) &&
         output.target.valid() && graph.value(output.target).is_input() &&
         output.value != output.target &&
         graph.value(output.value).meta.shape() ==
             graph.value(output.target).meta.shape();
}

void add_new(LayoutId id, std::vector<LayoutId>& to) {
  if (std::find(to.begin(), to.end(), id) == to.end()) to.push_back(id);
}

}  // namespace

InputOutputVariables::InputOutputVariables(ProblemData& data,
                                           BufferForest& forest)
    : data_(data), graph_(data.graph), forest_(forest) {
  for (const GraphOutput& output : graph_.outputs()) {
    if (is_tie(graph_, output)) ties_[output.target].push_back(output);
  }
}

void InputOutputVariables::add_inputs() {
  for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
    const ValueId value = graph_.inputs()[i].value;
    PlanVariable variable;
    variable.kind = PlanVariable::Kind::kInput;
    variable.index = i;
    if (const auto tied = ties_.find(value); tied != ties_.end()) {
      for (const GraphOutput& tie : tied->second) {
        variable.uses.push_back(tie.value);
      }
    }
    variable.makes = {value};
    data_.variables.push_back(std::move(variable));
  }
}

std::vector<RecipeLayouts> InputOutputVariables::known_recipes() const {
  std::vector<RecipeLayouts> known;
  for (const Recipe& recipe : data_.known_recipes) {
    if (!is_in_space(recipe, data_.mesh, data_.set_up.space)) continue;
    known.emplace_back(recipe, graph_, data_.mesh, *data_.roles);
  }
  return known;
}

Result<void> InputOutputVariables::choose_input_layouts(
    PinnedChoices& pinned, const RecipeChoices* recipe) {
  const std::vector<LayoutSet> required =
      forest_.required_layouts(data_.variables, data_.copied_to);
  const LayoutId replicated = this->replicated();
  const GivenChoices* given = data_.set_up.given;
  std::vector<RecipeLayouts> known;
  if (recipe == nullptr) known = known_recipes();
  for (PlanVariable& variable : data_.variables) {
    if (variable.kind != PlanVariable::Kind::kInput) continue;
    const ValueId value = variable.makes[0];
    std::vector<LayoutId> layouts{replicated};
    if (const PinnedLayout* pin = pinned.produced(value)) {
      layouts = {data_.layouts.intern(pin->layout)};
    } else {
      const bool is_parameter =
          graph_.inputs()[variable.index].kind == InputKind::kParameter;
      add_plain_layouts(required[value.index()].layouts(), is_parameter,
                        layouts);
      const GraphInput& input = graph_.inputs()[variable.index];
      for (const RecipeLayouts& of_recipe : known) {
        if (const auto stored = of_recipe.stored(input)) {
          add_new(data_.layouts.intern(*stored), layouts);
        }
      }
      const auto stored =
          recipe == nullptr ? std::nullopt : recipe->stored(input);
      if (stored) layouts = {data_.layouts.intern(*stored)};
    }
    if (given != nullptr) {
      layouts = interned(data_.layouts, given->inputs[variable.index]);
    }
    const PinnedLayout* state =
        given == nullptr ? pinned.state(value) : nullptr;
    if (state != nullptr && is_trained(variable)) {
      const LayoutId id = data_.layouts.intern(state->layout);
      const bool is_open = pinned.produced(value) == nullptr && !recipe;
      TrainedLayouts pinned_layouts{layouts, {id}};
      if (is_open) add_new(id, pinned_layouts.own);
      SP_ASSIGN(variable.choices, choices_of_input(variable, pinned_layouts));
      if (variable.choices->size() > 0) continue;
    }
    if (state != nullptr) pinned.pass_over_state(value);
    SP_ASSIGN(variable.choices, choices_of_input(variable, {layouts, layouts}));
  }
  return {};
}

// Returns whether an optimizer trains the input.
bool InputOutputVariables::is_trained(const PlanVariable& variable) const {
  return graph_.inputs()[variable.index].kind == InputKind::kParameter &&
         !variable.uses.empty() && data_.options.optimizer != Optimizer::kNone;
}

Result<std::shared_ptr<const ChoiceSet>> InputOutputVariables::choices_of_input(
    const PlanVariable& variable, const TrainedLayouts& layouts) {
  const ValueId value = variable.makes[0];
  const bool trained = is_trained(variable);
  auto& shared =
      input_choices_[{layouts.own, layouts.states, kinds_of_ties(value),
                      trained ? class_of_trained(data_, value) : 0}];
  if (!shared && trained) {
    SP_ASSIGN(shared,
              trained_parameter(data_, value, ties_.at(value), layouts));
  } else if (!shared) {
    shared = same_layout_everywhere(layouts.own, variable.uses.size(), 1);
  }
  return shared;
}

void InputOutputVariables::add_plain_layouts(const std::vector<LayoutId>& from,
                                             bool may_be_strided,
                                             std::vector<LayoutId>& to) const {
  for (const LayoutId id : from) {
    const Layout& layout = data_.layouts[id];
    if (layout.has_partial() || (layout.has_strided() && !may_be_strided)) {
      continue;
    }
    add_new(id, to);
  }
}

std::vector<OutputKind> InputOutputVariables::kinds_of_ties(
    ValueId input) const {
  std::vector<OutputKind> kinds;
  if (const auto tied = ties_.find(input); tied != ties_.end()) {
    for (const GraphOutput& tie : tied->second) kinds.push_back(tie.kind);
  }
  return kinds;
}

void InputOutputVariables::add_outputs(const PinnedChoices& pinned) {
  std::vector<std::vector<LayoutId>> produced(graph_.values().size());
  for (const PlanVariable& variable : data_.variables) {
    for (std::size_t o = 0; o < variable.makes.size(); ++o) {
      produced[variable.makes[o].index()] =
          variable.choices->layouts[variable.uses.size() + o];
    }
  }
  forest_.see(produced);
  const LayoutId replicated = this->replicated();
  const GivenChoices* given = data_.set_up.given;
  for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
    const GraphOutput& output = graph_.outputs()[i];
    if (is_tie(graph_, output)) continue;
    std::vector<LayoutId> layouts;
    if (const PinnedLayout* pin = pinned.produced(output.value)) {
      // The output has its pinned layout, unless that is a partial.
      layouts = {pin->layout.has_partial() ? replicated
                                           : data_.layouts.intern(pin->layout)};
    } else {
      layouts = {replicated};
      add_plain_layouts(produced[output.value.index()], false, layouts);
    }
    if (given != nullptr) {
      layouts = interned(data_.layouts, {given->outputs[i]});
    }
    PlanVariable variable;
    variable.kind = PlanVariable::Kind::kOutput;
    variable.index = i;
    variable.choices = same_layout_everywhere(layouts, 1, 0);
    variable.uses = {output.value};
    data_.variables.push_back(std::move(variable));
  }
}

}  // namespace shardprop

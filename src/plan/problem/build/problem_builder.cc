#include "base/guard.h"
#include "base/try.h"
#include "graph/analysis/in_place.h"
#include "plan/problem/build/buffers.h"
#include "plan/problem/build/transfer_tensors.h"
#include "plan/problem/choices/choice_subsets.h"
#include "plan/problem/choices/given_choices.h"
#include "plan/problem/choices/operator_choices.h"
#include "plan/problem/choices/trained_parameter.h"
#include "plan/problem/constraints/pinned_choices.h"
#include "plan/problem/constraints/recipe_layouts.h"
#include "plan/problem/layout_relations.h"
#include "plan/problem/problem_data.h"
#include "plan/tuning.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace shardprop {
namespace {

// Returns whether the node is a check of the program itself, which produces and
// writes nothing. An operator without a declaration may write anything.
bool is_assertion(const Node& node) {
  const FunctionSchema& function = *node.op.function;
  return node.outputs.empty() && !function.is_mutating() &&
         !function.has_tag("undeclared");
}

// If all parameters are smaller than that, they share one bucket.
std::int64_t bucket_bytes(const Graph& graph) {
  WideInt all = 1;
  for (const GraphInput& input : graph.inputs()) {
    const TensorMeta& meta = graph.value(input.value).meta;
    if (input.kind == InputKind::kParameter) {
      all += WideInt{meta.numel()} * item_size(meta.dtype());
    }
  }
  return std::min(tuning::kBucketBytes, saturated(all));
}

StepFusion step_fusion(const PlanQuestion& question) {
  return question.fusion == Fusion::kCompiler ? StepFusion::kBetweenCollectives
                                             : StepFusion::kEachStep;
}

}  // namespace

class PlanProblemBuilder {
 public:
  PlanProblemBuilder(ProblemData& data, const OpLibrary& library)
      : data_(data),
        graph_(data.graph),
        forest_(data.graph),
        choices_(data.mesh, data.topology, library, data.layouts,
                 data.set_up.space, step_fusion(data.options)),
        pinnable_(data.mesh, data.topology, library, data.layouts, {},
                  step_fusion(data.options)),
        given_(data.set_up.given) {
    if (given_ != nullptr) strategies_.emplace(*given_, data.layouts);
  }

  Result<void> build() {
    SP_ASSIGN(PinnedValues pinned,
              PinnedValues::create(graph_, data_.mesh, data_.options.pins));
    pinned_.emplace(data_, std::move(pinned));
    if (given_ != nullptr) {
      for (const std::vector<Layout>& layouts : given_->copies) {
        data_.copied_to.push_back(interned(data_.layouts, layouts));
      }
    }
    SP_CHECK(collect_choices());
    SP_CHECK(follow_recipe());
    for (const GraphOutput& output : graph_.outputs()) {
      if (is_tie(output)) ties_[output.target].push_back(output);
    }
    data_.values.resize(graph_.values().size());
    set_moved_tensors(data_);
    add_inputs();
    SP_CHECK(add_operators());
    // Given choices include the pins of the saved plan.
    if (given_ == nullptr) {
      SP_ASSIGN(data_.pinned, pinned_->counts());
    }
    SP_CHECK(choose_input_layouts());
    add_outputs();
    SP_CHECK(build_buffers(data_, forest_, *in_place_));
    if (const auto& refusal = data_.moves.refusal()) return fail(*refusal);
    return {};
  }

 private:
  // Returns whether the output is a gradient or an update, which ends in the
  // layout of its input.
  bool is_tie(const GraphOutput& output) const {
    return (output.kind == OutputKind::kGradient ||
            output.kind == OutputKind::kUpdate) &&
           output.target.valid() && graph_.value(output.target).is_input() &&
           output.value != output.target &&
           graph_.value(output.value).meta.shape() ==
               graph_.value(output.target).meta.shape();
  }

  void add_inputs() {
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

  // Collects all choices of every operator, before pins and recipes remove
  // some, and the fusion groups.
  Result<void> collect_choices() {
    std::vector<PartialSet> comes_as(graph_.values().size(), 0);
    found_.resize(graph_.nodes().size());
    data_.choices_of_node.resize(graph_.nodes().size());
    for (const Node& node : graph_.nodes()) {
      if (is_assertion(node)) continue;
      SP_CHECK(data_.check_stop());
      std::vector<PartialSet> meets;
      meets.reserve(node.inputs.size());
      for (const ValueId input : node.inputs) {
        meets.push_back(comes_as[input.index()]);
      }
      const OperatorChoices& found =
          (is_pinned(node) ? pinnable_ : choices_).of(node.op, meets);
      if (!found.set->unsupported.empty() && data_.options.strict) {
        return fail(Error{ErrorCode::kNoStrategy,
                          found.set->unsupported,
                          located(node),
                          {node.name + ": " + node.op_name()},
                          "add a rule, or leave out --strict to run it "
                          "replicated"});
      }
      for (std::size_t o = 0; o < node.outputs.size(); ++o) {
        comes_as[node.outputs[o].index()] = found.makes[o];
      }
      found_[node.id.index()] = &found;
      data_.choices_of_node[node.id.index()] = found.set;
    }
    find_in_place();
    std::vector<Fusing> fusing(graph_.nodes().size(), Fusing::kCuts);
    for (const Node& node : graph_.nodes()) {
      const auto& set = data_.choices_of_node[node.id.index()];
      if (set == nullptr) continue;
      fusing[node.id.index()] =
          fusing_of(graph_, node, *set->op.space, set->unsupported.empty(),
                    in_place_->operand(node).has_value());
    }
    if (data_.options.fusion == Fusion::kCompiler) {
      data_.fusion = std::make_shared<FusionGroups>(graph_, fusing);
    }
    return {};
  }

  void find_in_place() {
    std::vector<const IndexSpace*> spaces(graph_.nodes().size(), nullptr);
    for (std::size_t n = 0; n < spaces.size(); ++n) {
      if (found_[n] != nullptr) spaces[n] = found_[n]->set->op.space.get();
    }
    in_place_.emplace(graph_, spaces);
  }

  // Finds the roles of the tensor dims and the known recipes, and prepares the
  // layouts of the requested recipe.
  Result<void> follow_recipe() {
    std::vector<const IndexSpace*> spaces(graph_.nodes().size(), nullptr);
    for (std::size_t n = 0; n < spaces.size(); ++n) {
      const auto& set = data_.choices_of_node[n];
      if (set && set->unsupported.empty()) spaces[n] = set->op.space.get();
    }
    data_.roles = std::make_shared<DimRoles>(graph_, std::move(spaces));
    data_.known_recipes =
        recipes_for(data_.mesh, data_.roles->has(DimRole::kExperts));
    if (data_.options.recipe) {
      SP_ASSIGN(recipe_, on_mesh(*data_.options.recipe, data_.mesh));
      layouts_of_recipe_.emplace(*recipe_, graph_, data_.mesh, *data_.roles);
    }
    return {};
  }

  // Returns the node's choices with their costs in context: an input that may
  // be overwritten is not copied first, and fused nodes share a kernel.
  std::shared_ptr<const ChoiceSet> priced(const Node& node,
                                          const OperatorChoices& found) {
    const IndexSpace& space = *found.set->op.space;
    if (data_.fusion && !space.is_free &&
        data_.fusion->group(node.id) != FusionGroups::kAlone) {
      return choices_.fused(found.set, data_.fusion->part(node));
    }
    const bool copies =
        space.writes_into != IndexSpace::kNothing &&
        !in_place_->may(node, static_cast<std::size_t>(space.writes_into));
    return copies ? found.keeping : found.set;
  }

  Result<void> add_operators() {
    data_.of_node.resize(graph_.nodes().size());
    const std::vector<bool> read = read_values();
    for (const Node& node : graph_.nodes()) {
      const OperatorChoices* found = found_[node.id.index()];
      if (found == nullptr) continue;
      SP_CHECK(data_.check_stop());
      auto set = pinned_->that_make(node, priced(node, *found));
      // A view that is pinned, or that nothing reads, chooses its own layout.
      const bool is_view = BufferForest::keeps_every_element(graph_, node) &&
                           pinned_->produced(node.outputs[0]) == nullptr &&
                           read[node.outputs[0].index()];
      if (given_ != nullptr && !is_view) {
        SP_ASSIGN(set, strategies_->of(node, *set, located(node)));
      } else if (!is_view) {
        set = pinned_->that_take(node, std::move(set));
        set = with_recipe(node, std::move(set));
        SP_ASSIGN(set, as_forced(node, std::move(set)));
      }
      data_.choices_of_node[node.id.index()] = set;
      if (is_view) {
        pinned_->see_view(node, *set);
        forest_.add_view(node.outputs[0], node.inputs[0], std::move(set));
        continue;
      }
      data_.of_node[node.id.index()] = PlanVariableId(data_.variables.size());
      PlanVariable variable;
      variable.index = node.id.index();
      variable.choices = std::move(set);
      variable.uses = node.inputs;
      variable.makes = node.outputs;
      data_.variables.push_back(std::move(variable));
    }
    return {};
  }

  // Returns, by value, whether an operator reads it or it is an output.
  std::vector<bool> read_values() const {
    std::vector<bool> read;
    for (const Value& value : graph_.values()) {
      read.push_back(!value.consumers.empty());
    }
    for (const GraphOutput& output : graph_.outputs()) {
      read[output.value.index()] = true;
    }
    return read;
  }

  // Returns whether the node may have all layouts of the named space. This
  // holds for nodes with pinned results. It also holds for all nodes of a
  // recipe, unless the recipe is built on joined mesh dims.
  bool is_pinned(const Node& node) const {
    return (data_.options.recipe && data_.set_up.space.joined_dims == 0) ||
           pinned_->produces_pinned(node);
  }

  static std::string located(const Node& node) {
    if (node.source.empty()) return node.module_path;
    const std::string source = to_string(node.source);
    if (node.module_path.empty()) return source;
    return node.module_path + " (" + source + ")";
  }

  std::shared_ptr<const ChoiceSet> with_recipe(
      const Node& node, std::shared_ptr<const ChoiceSet> set) {
    if (!layouts_of_recipe_) return set;
    NodeWish wish = layouts_of_recipe_->wish(node);
    auto& kept = recipe_choices_[{set, std::move(wish)}];
    if (!kept) {
      // Layouts that no choice has are kept, since a path between two others
      // may lead over them.
      kept = with_choices(*set, granted(*set, layouts_of_recipe_->wish(node),
                                        layouts_of_recipe_->order()));
    }
    return kept;
  }

  Result<std::shared_ptr<const ChoiceSet>> as_forced(
      const Node& node, std::shared_ptr<const ChoiceSet> set) {
    const auto& forced = data_.options.forced;
    if (!forced || forced->node != node.id) return set;
    std::vector<Layout> layouts = forced->takes;
    layouts.insert(layouts.end(), forced->makes.begin(), forced->makes.end());
    std::vector<std::uint32_t> kept;
    for (std::uint32_t c = 0; c < set->size(); ++c) {
      bool same = layouts.size() == set->layouts.size();
      for (std::size_t o = 0; same && o < layouts.size(); ++o) {
        same = data_.layouts[set->layout(c, o)] == layouts[o];
      }
      if (same) kept.push_back(c);
    }
    if (kept.empty()) {
      return fail(Error{
          ErrorCode::kPinNoStrategy,
          "no strategy of `" + node.name + "` takes and makes these layouts",
          located(node),
          {},
          "`shardprop why` lists those that it has"});
    }
    return without_spare_layouts(with_choices(*set, kept));
  }

  // Replaces the layouts by the one in which the recipe stores the input.
  // Without a recipe, adds the layouts of the known recipes.
  void add_recipe_layouts(const GraphInput& input,
                          std::vector<LayoutId>& layouts) {
    if (layouts_of_recipe_) {
      if (const auto stored = layouts_of_recipe_->stored(input)) {
        layouts = {data_.layouts.intern(*stored)};
      }
      return;
    }
    for (const Recipe& recipe : data_.known_recipes) {
      if (!is_in_space(recipe, data_.mesh, data_.set_up.space)) continue;
      const RecipeLayouts known(recipe, graph_, data_.mesh, *data_.roles);
      const auto stored = known.stored(input);
      if (!stored) continue;
      const LayoutId id = data_.layouts.intern(*stored);
      if (std::find(layouts.begin(), layouts.end(), id) == layouts.end()) {
        layouts.push_back(id);
      }
    }
  }

  // Inputs have R, or any layout without partials and strides that a consumer
  // reads them in.
  Result<void> choose_input_layouts() {
    const LayoutId replicated =
        data_.layouts.intern(Layout::replicated(data_.mesh.ndim()));
    const std::vector<LayoutSet> required =
        forest_.required_layouts(data_.variables, data_.copied_to);
    for (PlanVariable& variable : data_.variables) {
      if (variable.kind != PlanVariable::Kind::kInput) continue;
      const Value& value = graph_.value(variable.makes[0]);
      std::vector<LayoutId> layouts{replicated};
      if (const PinnedLayout* pin = pinned_->produced(value.id)) {
        layouts = {data_.layouts.intern(pin->layout)};
      } else {
        add_whole_layouts(required[value.id.index()].layouts(), layouts);
        add_recipe_layouts(graph_.inputs()[variable.index], layouts);
      }
      if (given_ != nullptr) {
        layouts = interned(data_.layouts, given_->inputs[variable.index]);
      }
      const bool trained =
          graph_.inputs()[variable.index].kind == InputKind::kParameter &&
          !variable.uses.empty() && data_.options.optimizer != Optimizer::kNone;
      auto& shared =
          input_choices_[{layouts, kinds_of_ties(value.id),
                          trained ? class_of_trained(data_, value.id) : 0}];
      if (!shared && trained) {
        SP_ASSIGN(shared, trained_parameter(data_, value.id, ties_.at(value.id),
                                            layouts));
      } else if (!shared) {
        shared = same_layout_everywhere(layouts, variable.uses.size(), 1);
      }
      variable.choices = shared;
    }
    return {};
  }

  void add_whole_layouts(const std::vector<LayoutId>& from,
                         std::vector<LayoutId>& to) const {
    for (const LayoutId id : from) {
      const Layout& layout = data_.layouts[id];
      if (layout.has_partial() || layout.has_strided()) continue;
      if (std::find(to.begin(), to.end(), id) == to.end()) to.push_back(id);
    }
  }

  std::vector<OutputKind> kinds_of_ties(ValueId input) const {
    std::vector<OutputKind> kinds;
    if (const auto tied = ties_.find(input); tied != ties_.end()) {
      for (const GraphOutput& tie : tied->second) kinds.push_back(tie.kind);
    }
    return kinds;
  }

  void add_outputs() {
    const LayoutId replicated =
        data_.layouts.intern(Layout::replicated(data_.mesh.ndim()));
    std::vector<std::vector<LayoutId>> produced(graph_.values().size());
    for (const PlanVariable& variable : data_.variables) {
      for (std::size_t o = 0; o < variable.makes.size(); ++o) {
        produced[variable.makes[o].index()] =
            variable.choices->layouts[variable.uses.size() + o];
      }
    }
    forest_.see(produced);
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      const GraphOutput& output = graph_.outputs()[i];
      if (is_tie(output)) continue;
      std::vector<LayoutId> layouts;
      const PinnedLayout* pinned = pinned_->produced(output.value);
      if (pinned == nullptr) layouts.push_back(replicated);
      add_whole_layouts(produced[output.value.index()], layouts);
      if (pinned != nullptr) {
        // The output has its pinned layout, unless that is a partial.
        layouts.assign(1, data_.layouts.intern(pinned->layout));
        if (data_.layouts[layouts[0]].has_partial()) layouts[0] = replicated;
      }
      if (given_ != nullptr)
        layouts = interned(data_.layouts, {given_->outputs[i]});
      PlanVariable variable;
      variable.kind = PlanVariable::Kind::kOutput;
      variable.index = i;
      variable.choices = same_layout_everywhere(layouts, 1, 0);
      variable.uses = {output.value};
      data_.variables.push_back(std::move(variable));
    }
  }

  ProblemData& data_;
  const Graph& graph_;
  BufferForest forest_;
  OperatorChoiceCache choices_;
  std::vector<const OperatorChoices*> found_;  // by node
  std::optional<InPlace> in_place_;            // once all choices are collected
  OperatorChoiceCache pinnable_;
  const GivenChoices* given_;
  std::optional<GivenStrategies> strategies_;  // of the given choices
  std::optional<Recipe> recipe_;
  std::optional<RecipeLayouts> layouts_of_recipe_;
  // The choices that grant a wish, by the choices before and the wish.
  std::map<std::pair<std::shared_ptr<const ChoiceSet>, NodeWish>,
           std::shared_ptr<const ChoiceSet>>
      recipe_choices_;
  std::optional<PinnedChoices> pinned_;
  std::map<ValueId, std::vector<GraphOutput>> ties_;
  // The choices by layouts, bound outputs and, for trained parameters, their
  // class.
  std::map<
      std::tuple<std::vector<LayoutId>, std::vector<OutputKind>, std::uint32_t>,
      std::shared_ptr<const ChoiceSet>>
      input_choices_;
};

Result<PlanProblem> PlanProblem::create(const Graph& graph, DeviceMesh mesh,
                                        Topology topology,
                                        const OpLibrary& library,
                                        const PlanOptions& options,
                                        const SetUp& set_up) {
  SP_CHECK(validate(options));
  SP_CHECK(check_topology(topology));
  return guarded([&]() -> Result<PlanProblem> {
    SP_ASSIGN(RedistributePlanner planner,
              RedistributePlanner::create(mesh, topology));
    SP_ASSIGN(RedistributePlanner bucketed,
              RedistributePlanner::create(
                  mesh, topology, {.bucket_bytes = bucket_bytes(graph)}));
    ProblemData data(graph, std::move(mesh), std::move(topology),
                     resolved(options, graph), set_up, std::move(planner),
                     std::move(bucketed));
    SP_CHECK(PlanProblemBuilder(data, library).build());
    return PlanProblem(std::move(data));
  });
}

}  // namespace shardprop

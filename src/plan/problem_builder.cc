#include "base/guard.h"
#include "base/try.h"
#include "plan/given_choices.h"
#include "plan/layout_relations.h"
#include "plan/moved_tensors.h"
#include "plan/operator_choices.h"
#include "plan/overwriting.h"
#include "plan/pinned_values.h"
#include "plan/problem_body.h"
#include "plan/recipe_layouts.h"
#include "plan/stop.h"
#include "plan/storages.h"
#include "plan/trained_parameter.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace shardprop {
namespace {

// Checks of the program itself, which move and make nothing.
bool is_assertion(const Node& node) {
  const std::string_view name = node.op.function->base_name();
  return node.outputs.empty() &&
         (name.starts_with("_assert") || name.starts_with("sym_constrain"));
}

// Parameters that are gathered and gradients that are reduced go in buckets of
// this size: the default of PyTorch's DistributedDataParallel.
constexpr std::int64_t kBucketBytes = std::int64_t{25} << 20;

// Smaller programs never fill one: all their parameters are a bucket.
std::int64_t bucket_bytes(const Graph& graph) {
  WideInt all = 1;
  for (const GraphInput& input : graph.inputs()) {
    const TensorMeta& meta = graph.value(input.value).meta;
    if (input.kind == InputKind::kParameter) {
      all += WideInt{meta.numel()} * item_size(meta.dtype());
    }
  }
  return std::min(kBucketBytes, saturated(all));
}

// A set with some of the choices.
std::shared_ptr<ChoiceSet> with_choices(const ChoiceSet& set,
                                        std::span<const std::uint32_t> kept) {
  auto out = std::make_shared<ChoiceSet>(set);
  const std::size_t operands = set.layouts.size();
  out->picks.clear();
  out->costs.clear();
  out->compute.clear();
  out->op.strategies.clear();
  for (const std::uint32_t c : kept) {
    const auto row =
        set.picks.begin() + static_cast<std::ptrdiff_t>(c * operands);
    out->picks.insert(out->picks.end(), row,
                      row + static_cast<std::ptrdiff_t>(operands));
    out->costs.push_back(set.costs[c]);
    out->compute.push_back(set.compute[c]);
    out->op.strategies.push_back(set.op.strategies[c]);
  }
  return out;
}

// With no layouts but those that its choices have.
std::shared_ptr<ChoiceSet> without_spare_layouts(
    std::shared_ptr<ChoiceSet> set) {
  const std::size_t operands = set->layouts.size();
  for (std::size_t o = 0; o < operands; ++o) {
    std::vector<LayoutId> used;
    for (std::size_t c = 0; c < set->size(); ++c) {
      const LayoutId id = set->layout(c, o);
      const auto found = std::find(used.begin(), used.end(), id);
      set->picks[c * operands + o] =
          static_cast<std::uint32_t>(found - used.begin());
      if (found == used.end()) used.push_back(id);
    }
    set->layouts[o] = std::move(used);
  }
  return set;
}

// A set with the operand's layout fixed; empty when no choice has it.
std::shared_ptr<ChoiceSet> restricted(const ChoiceSet& set, std::size_t operand,
                                      LayoutId wanted) {
  std::vector<std::uint32_t> kept;
  for (std::uint32_t c = 0; c < set.size(); ++c) {
    if (set.layout(c, operand) == wanted) kept.push_back(c);
  }
  return with_choices(set, kept);
}

// A choice a layout, the same for every operand.
std::shared_ptr<ChoiceSet> same_layout_everywhere(
    const std::vector<LayoutId>& layouts, std::size_t uses, std::size_t makes) {
  auto set = std::make_shared<ChoiceSet>();
  set->num_uses = uses;
  set->layouts.assign(uses + makes, layouts);
  for (std::size_t c = 0; c < layouts.size(); ++c) {
    set->picks.insert(set->picks.end(), uses + makes,
                      static_cast<std::uint32_t>(c));
  }
  set->costs.assign(layouts.size(), 0);
  return set;
}

}  // namespace

class PlanProblemBuilder {
 public:
  PlanProblemBuilder(PlanProblem::Body& body, const OpLibrary& library)
      : body_(body),
        graph_(body.graph),
        forest_(body.graph),
        choices_(body.mesh, body.topology, library, body.layouts,
                 body.set_up.space),
        pinnable_(body.mesh, body.topology, library, body.layouts, {}),
        given_(body.set_up.given) {}

  Result<void> build() {
    SP_ASSIGN(PinnedValues pinned,
              PinnedValues::create(graph_, body_.mesh, body_.options.pins));
    pinned_.emplace(std::move(pinned));
    pin_uses();
    if (given_ != nullptr) {
      for (const std::vector<Layout>& layouts : given_->copies) {
        body_.copied_to.push_back(interned(layouts));
      }
    }
    SP_CHECK(collect_choices());
    SP_CHECK(follow_recipe());
    for (const GraphOutput& output : graph_.outputs()) {
      if (is_tie(output)) ties_[output.target].push_back(output);
    }
    body_.values.resize(graph_.values().size());
    set_moved_tensors(body_);
    add_inputs();
    SP_CHECK(add_operators());
    // What is given has been pinned before.
    if (given_ == nullptr) {
      SP_ASSIGN(body_.pinned, pinned_->counts());
    }
    choose_input_layouts();
    add_outputs();
    SP_CHECK(build_storages(body_, forest_));
    if (const auto& refusal = body_.moves.refusal()) return fail(*refusal);
    return {};
  }

 private:
  // A gradient or update ends in the layout of the input it belongs to.
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
      body_.variables.push_back(std::move(variable));
    }
  }

  // All the ways of every operator, before pins and recipes leave some out, and
  // how operators go together.
  Result<void> collect_choices() {
    std::vector<PartialSet> comes_as(graph_.values().size(), 0);
    found_.resize(graph_.nodes().size());
    body_.choices_of_node.resize(graph_.nodes().size());
    std::vector<Fusing> fusing(graph_.nodes().size(), Fusing::kCuts);
    for (const Node& node : graph_.nodes()) {
      if (is_assertion(node)) continue;
      SP_CHECK(body_.check_stop());
      std::vector<PartialSet> meets;
      meets.reserve(node.inputs.size());
      for (const ValueId input : node.inputs) {
        meets.push_back(comes_as[input.index()]);
      }
      const OperatorChoices& found =
          (is_pinned(node) ? pinnable_ : choices_).of(node.op, meets);
      if (!found.set->unsupported.empty() && body_.options.strict) {
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
      body_.choices_of_node[node.id.index()] = found.set;
      fusing[node.id.index()] = fusing_of(graph_, node, *found.set->op.space,
                                          found.set->unsupported.empty());
    }
    if (body_.options.fusion == Fusion::kCompiler) {
      body_.fusion.emplace(graph_, fusing);
    }
    return {};
  }

  // Where the recipe asked for, or else any that people know, would store what.
  Result<void> follow_recipe() {
    std::vector<const IndexSpace*> spaces(graph_.nodes().size(), nullptr);
    for (std::size_t n = 0; n < spaces.size(); ++n) {
      const auto& set = body_.choices_of_node[n];
      if (set && set->unsupported.empty()) spaces[n] = set->op.space.get();
    }
    body_.roles.emplace(graph_, std::move(spaces));
    body_.known_recipes =
        recipes_for(body_.mesh, body_.roles->has(DimRole::kExperts));
    if (body_.options.recipe) {
      SP_ASSIGN(recipe_, on_mesh(*body_.options.recipe, body_.mesh));
      layouts_of_recipe_.emplace(*recipe_, graph_, body_.mesh, *body_.roles);
    }
    return {};
  }

  // Priced as it stands: with what it overwrites, or in its kernel.
  std::shared_ptr<const ChoiceSet> priced(const Node& node,
                                          const OperatorChoices& found,
                                          const Overwriting& overwriting) {
    const IndexSpace& space = *found.set->op.space;
    if (body_.fusion && !space.is_free &&
        body_.fusion->group(node.id) != FusionGroups::kAlone) {
      return choices_.fused(found.set, body_.fusion->part(node));
    }
    const bool copies =
        space.writes_into != IndexSpace::kNothing &&
        !overwriting.may(node, static_cast<std::size_t>(space.writes_into));
    return copies ? found.keeping : found.set;
  }

  Result<void> add_operators() {
    body_.of_node.resize(graph_.nodes().size());
    const Overwriting overwriting(graph_);
    for (const Node& node : graph_.nodes()) {
      const OperatorChoices* found = found_[node.id.index()];
      if (found == nullptr) continue;
      SP_CHECK(body_.check_stop());
      auto set = pinned_choices(node, priced(node, *found, overwriting));
      const bool is_view = StorageForest::keeps_every_element(graph_, node) &&
                           pinned_->made(node.outputs[0]) == nullptr;
      if (given_ != nullptr && !is_view) {
        SP_ASSIGN(set, given_choice(node, *set));
      } else if (!is_view) {
        set = with_pinned_uses(node, std::move(set));
        set = with_recipe(node, std::move(set));
      }
      body_.choices_of_node[node.id.index()] = set;
      if (is_view) {
        pin_uses_of_view(node, *set);
        forest_.add_view(node.outputs[0], node.inputs[0], std::move(set));
        continue;
      }
      body_.of_node[node.id.index()] = PlanVariableId(body_.variables.size());
      PlanVariable variable;
      variable.index = node.id.index();
      variable.choices = std::move(set);
      variable.uses = node.inputs;
      variable.makes = node.outputs;
      body_.variables.push_back(std::move(variable));
    }
    return {};
  }

  std::vector<LayoutId> interned(const std::vector<Layout>& layouts) {
    std::vector<LayoutId> ids;
    for (const Layout& layout : layouts) {
      const LayoutId id = body_.layouts.intern(layout);
      if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
    }
    return ids;
  }

  // The one strategy with the layouts that are given.
  Result<std::shared_ptr<const ChoiceSet>> given_choice(const Node& node,
                                                        const ChoiceSet& set) {
    const std::vector<Layout>& wanted = given_->nodes[node.id.index()];
    std::vector<std::uint64_t> key{
        reinterpret_cast<std::uintptr_t>(&set)};  // NOLINT: an identity
    std::vector<LayoutId> ids;
    for (const Layout& layout : wanted) {
      ids.push_back(body_.layouts.intern(layout));
      key.push_back(ids.back().index());
    }
    auto& kept = given_choices_[key];
    if (!kept) {
      std::vector<std::uint32_t> fitting;
      for (std::uint32_t c = 0; c < set.size() && fitting.empty(); ++c) {
        bool fits = true;
        for (std::size_t o = 0; o < ids.size() && fits; ++o) {
          fits = set.layout(c, o) == ids[o];
        }
        if (fits) fitting.push_back(c);
      }
      kept = without_spare_layouts(with_choices(set, fitting));
    }
    if (kept->size() == 0) {
      return fail(Error{ErrorCode::kPlanFile,
                        "no strategy of `" + node.op_name() +
                            "` takes and makes what the plan says of `" +
                            node.name + "`",
                        located(node),
                        {},
                        "plan anew without --plan"});
    }
    return std::shared_ptr<const ChoiceSet>(kept);
  }

  // What is pinned, or to follow a recipe, may be laid out in any way of the
  // named space.
  bool is_pinned(const Node& node) const {
    return body_.options.recipe ||
           std::any_of(node.outputs.begin(), node.outputs.end(),
                       [&](ValueId output) {
                         return pinned_->made(output) != nullptr;
                       });
  }

  static std::string located(const Node& node) {
    if (node.source.empty()) return node.module_path;
    return node.module_path + " (" + to_string(node.source) + ")";
  }

  // A pin that no strategy honours is passed over.
  std::shared_ptr<const ChoiceSet> pinned_choices(
      const Node& node, std::shared_ptr<const ChoiceSet> set) {
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      const PinnedLayout* pinned = pinned_->made(node.outputs[o]);
      if (pinned == nullptr) continue;
      auto kept = with_layout(set, set->num_uses + o,
                              body_.layouts.intern(pinned->layout));
      if (kept->size() > 0) {
        set = std::move(kept);
      } else {
        pinned_->pass_over(node.outputs[o],
                           no_strategy(node, o, *set, *pinned));
      }
    }
    return set;
  }

  std::shared_ptr<const ChoiceSet> with_layout(
      const std::shared_ptr<const ChoiceSet>& set, std::size_t operand,
      LayoutId wanted) {
    auto& kept = pinned_choices_[{set, operand, wanted}];
    if (!kept) kept = restricted(*set, operand, wanted);
    return kept;
  }

  std::shared_ptr<const ChoiceSet> with_recipe(
      const Node& node, std::shared_ptr<const ChoiceSet> set) {
    if (!layouts_of_recipe_) return set;
    NodeWish wish = layouts_of_recipe_->wish(node);
    auto& kept = recipe_choices_[{set, std::move(wish)}];
    if (!kept) {
      kept = with_choices(*set, granted(*set, layouts_of_recipe_->wish(node),
                                        layouts_of_recipe_->order()));
    }
    return kept;
  }

  // How the recipe stores an input; without one, how the known ones would.
  void add_recipe_layouts(const GraphInput& input,
                          std::vector<LayoutId>& layouts) {
    if (layouts_of_recipe_) {
      if (const auto stored = layouts_of_recipe_->stored(input)) {
        layouts = {body_.layouts.intern(*stored)};
      }
      return;
    }
    if (input.kind != InputKind::kParameter || !body_.set_up.space.is_named()) {
      return;
    }
    for (const Recipe& recipe : body_.known_recipes) {
      const RecipeLayouts known(recipe, graph_, body_.mesh, *body_.roles);
      const LayoutId id = body_.layouts.intern(*known.stored(input));
      if (std::find(layouts.begin(), layouts.end(), id) == layouts.end()) {
        layouts.push_back(id);
      }
    }
  }

  // ---- how inputs are taken

  void pin_uses() {
    for (const GraphInput& input : graph_.inputs()) {
      for (const PinnedLayout& pinned : pinned_->used(input.value)) {
        pinned_uses_[input.value].push_back(
            {input.value, &pinned, body_.layouts.intern(pinned.layout)});
      }
    }
  }

  // A view is taken as what it views would be.
  void pin_uses_of_view(const Node& view, const ChoiceSet& set) {
    const auto found = pinned_uses_.find(view.inputs[0]);
    if (found == pinned_uses_.end()) return;
    std::vector<PinnedUse> seen;
    for (PinnedUse use : found->second) {
      for (std::size_t c = 0; c < set.size(); ++c) {
        if (set.layout(c, 0) != use.layout) continue;
        use.layout = set.layout(c, 1);
        seen.push_back(use);
        break;
      }
    }
    pinned_uses_[view.outputs[0]] = std::move(seen);
  }

  std::shared_ptr<const ChoiceSet> with_pinned_uses(
      const Node& node, std::shared_ptr<const ChoiceSet> set) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto found = pinned_uses_.find(node.inputs[i]);
      if (found == pinned_uses_.end()) continue;
      for (const PinnedUse& use : found->second) {
        if (!pinned_->is_for(*use.pinned, use.input, node)) continue;
        auto kept = with_layout(set, i, use.layout);
        if (kept->size() == 0) continue;
        set = std::move(kept);
        pinned_->note_used(use.input, *use.pinned);
      }
    }
    return set;
  }

  Error no_strategy(const Node& node, std::size_t output, const ChoiceSet& set,
                    const PinnedLayout& wanted) const {
    std::string made;
    constexpr std::size_t kMostListed = 8;
    const auto& layouts = set.layouts[set.num_uses + output];
    for (std::size_t i = 0; i < std::min(layouts.size(), kMostListed); ++i) {
      made += (i == 0 ? "" : "  ") + to_string(body_.layouts[layouts[i]]);
    }
    if (layouts.size() > kMostListed) made += "  ...";
    return Error{ErrorCode::kPinNoStrategy,
                 "no strategy of `" + node.op_name() + "` makes `" + node.name +
                     "` as " + to_string(wanted.layout),
                 "--pin '" + to_string(body_.options.pins[wanted.pin]) + "'",
                 {"it can be made as " + made},
                 "pin it to one of these, or pin what takes it instead"};
  }

  // Inputs come in any whole layout that a consumer takes them in, or R.
  void choose_input_layouts() {
    const LayoutId replicated =
        body_.layouts.intern(Layout::replicated(body_.mesh.ndim()));
    const std::vector<LayoutSet> wanted =
        forest_.wanted_layouts(body_.variables);
    for (PlanVariable& variable : body_.variables) {
      if (variable.kind != PlanVariable::Kind::kInput) continue;
      const Value& value = graph_.value(variable.makes[0]);
      std::vector<LayoutId> layouts{replicated};
      if (const PinnedLayout* pin = pinned_->made(value.id)) {
        layouts = {body_.layouts.intern(pin->layout)};
      } else {
        add_whole_layouts(wanted[value.id.index()].layouts(), layouts);
        add_recipe_layouts(graph_.inputs()[variable.index], layouts);
      }
      if (given_ != nullptr) {
        layouts = interned(given_->inputs[variable.index]);
      }
      const bool trained =
          graph_.inputs()[variable.index].kind == InputKind::kParameter &&
          !variable.uses.empty() && body_.options.optimizer != Optimizer::kNone;
      auto& shared =
          input_choices_[{layouts, kinds_of_ties(value.id),
                          trained ? class_of_trained(body_, value.id) : 0}];
      if (!shared) {
        shared = trained
                     ? trained_parameter(body_, value.id, ties_.at(value.id),
                                         layouts)
                     : same_layout_everywhere(layouts, variable.uses.size(), 1);
      }
      variable.choices = shared;
    }
  }

  void add_whole_layouts(const std::vector<LayoutId>& from,
                         std::vector<LayoutId>& to) const {
    for (const LayoutId id : from) {
      const Layout& layout = body_.layouts[id];
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
        body_.layouts.intern(Layout::replicated(body_.mesh.ndim()));
    std::vector<std::vector<LayoutId>> made(graph_.values().size());
    for (const PlanVariable& variable : body_.variables) {
      for (std::size_t o = 0; o < variable.makes.size(); ++o) {
        made[variable.makes[o].index()] =
            variable.choices->layouts[variable.uses.size() + o];
      }
    }
    forest_.see(made);
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      const GraphOutput& output = graph_.outputs()[i];
      if (is_tie(output)) continue;
      std::vector<LayoutId> layouts;
      const PinnedLayout* pinned = pinned_->made(output.value);
      if (pinned == nullptr) layouts.push_back(replicated);
      add_whole_layouts(made[output.value.index()], layouts);
      if (pinned != nullptr) {
        // Handed back as it was asked for, unless that is a partial.
        layouts.assign(1, body_.layouts.intern(pinned->layout));
        if (body_.layouts[layouts[0]].has_partial()) layouts[0] = replicated;
      }
      if (given_ != nullptr) layouts = interned({given_->outputs[i]});
      PlanVariable variable;
      variable.kind = PlanVariable::Kind::kOutput;
      variable.index = i;
      variable.choices = same_layout_everywhere(layouts, 1, 0);
      variable.uses = {output.value};
      body_.variables.push_back(std::move(variable));
    }
  }

  PlanProblem::Body& body_;
  const Graph& graph_;
  StorageForest forest_;
  OperatorChoiceCache choices_;
  std::vector<const OperatorChoices*> found_;  // by node
  OperatorChoiceCache pinnable_;
  const GivenChoices* given_;
  std::optional<Recipe> recipe_;
  std::optional<RecipeLayouts> layouts_of_recipe_;
  // By choices before, and what was asked of them.
  std::map<std::pair<std::shared_ptr<const ChoiceSet>, NodeWish>,
           std::shared_ptr<const ChoiceSet>>
      recipe_choices_;
  std::optional<PinnedValues> pinned_;
  // How a value is to be taken: an input, or a view of one.
  struct PinnedUse {
    ValueId input;
    const PinnedLayout* pinned = nullptr;
    LayoutId layout;  // of the value itself
  };
  std::map<ValueId, std::vector<PinnedUse>> pinned_uses_;
  std::map<ValueId, std::vector<GraphOutput>> ties_;
  // By layouts, ties and, of trained parameters, their class.
  std::map<
      std::tuple<std::vector<LayoutId>, std::vector<OutputKind>, std::uint32_t>,
      std::shared_ptr<const ChoiceSet>>
      input_choices_;
  // By choices, operand and layout.
  std::map<std::tuple<std::shared_ptr<const ChoiceSet>, std::size_t, LayoutId>,
           std::shared_ptr<const ChoiceSet>>
      pinned_choices_;
  // By all choices, and the layouts of the one that is given.
  std::map<std::vector<std::uint64_t>, std::shared_ptr<const ChoiceSet>>
      given_choices_;
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
    auto body = std::make_unique<Body>(graph, std::move(mesh),
                                       std::move(topology), options, set_up,
                                       std::move(planner), std::move(bucketed));
    SP_CHECK(PlanProblemBuilder(*body, library).build());
    return PlanProblem(std::move(body));
  });
}

}  // namespace shardprop

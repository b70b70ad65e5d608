#include "base/guard.h"
#include "base/try.h"
#include "graph/analysis/in_place.h"
#include "graph/analysis/whole_view.h"
#include "plan/problem/build/buffers.h"
#include "plan/problem/build/input_output_variables.h"
#include "plan/problem/build/tensor_parallel_dims.h"
#include "plan/problem/build/transfer_tensors.h"
#include "plan/problem/choices/given_choices.h"
#include "plan/problem/choices/operator_choices.h"
#include "plan/problem/choices/sharding_seeds.h"
#include "plan/problem/constraints/forced_choice.h"
#include "plan/problem/constraints/pinned_choices.h"
#include "plan/problem/constraints/recipe_choices.h"
#include "plan/problem/constraints/second_run_choices.h"
#include "plan/problem/equal_choices.h"
#include "plan/problem/problem_data.h"
#include "plan/problem/transfer_costs.h"
#include "plan/tuning.h"

#include <algorithm>
#include <optional>
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
        read_(read_values(data.graph)),
        forest_(data.graph),
        inputs_and_outputs_(data, forest_),
        choices_(data.mesh, data.topology, library, data.layouts,
                 data.set_up.space, step_fusion(data.options)),
        pinnable_(data.mesh, data.topology, library, data.layouts, {},
                  step_fusion(data.options)),
        seeds_(data.graph, data.mesh, library),
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
    seed_shardings();
    SP_CHECK(collect_choices());
    if (data_.options.overlap > 0) find_windows();
    SP_CHECK(follow_recipe());
    data_.values.resize(graph_.values().size());
    set_moved_tensors(data_);
    inputs_and_outputs_.add_inputs();
    SP_CHECK(add_operators());
    if (given_ == nullptr) SP_CHECK(keep_choices_of_both_runs(data_));
    SP_CHECK(inputs_and_outputs_.choose_input_layouts(
        *pinned_, recipe_ ? &*recipe_ : nullptr));
    // Given choices include the pins of the saved plan.
    if (given_ == nullptr) {
      SP_ASSIGN(data_.pinned, pinned_->counts());
    }
    inputs_and_outputs_.add_outputs(*pinned_);
    SP_CHECK(build_buffers(data_, forest_, *in_place_));
    if (const auto& refusal = data_.moves.refusal()) return fail(*refusal);
    // Given choices are those of one plan, which is only judged.
    data_.equal_choices = given_ == nullptr
                              ? std::make_shared<const EqualChoices>(data_)
                              : std::make_shared<const EqualChoices>();
    return {};
  }

 private:
  // Finds the factor shardings besides mesh order that operators may have.
  // A judged plan has only the shardings that it names. With more of them, a
  // view may read another copy than the plan says.
  void seed_shardings() {
    if (given_ != nullptr) {
      for (const Node& node : graph_.nodes()) {
        seeds_.offer(node, given_->nodes[node.id.index()]);
      }
      for (const GivenChoices::View& view : given_->views) {
        seeds_.offer_views(view.as, view.of, view.layout);
      }
      return;
    }
    for (const Value& value : graph_.values()) {
      if (const PinnedLayout* pinned = pinned_->produced(value.id)) {
        demand_pinned(value, pinned->layout);
      }
      if (!value.is_input()) continue;
      for (const PinnedLayout& pinned : pinned_->used(value.id)) {
        demand_pinned(value, pinned.layout);
      }
    }
    if (const auto& forced = data_.options.forced) {
      std::vector<Layout> operands = forced->takes;
      operands.insert(operands.end(), forced->makes.begin(),
                      forced->makes.end());
      seeds_.demand(graph_.node(forced->node), operands);
    }
    seeds_.demand_by_views();
    seeds_.demand_by_pieces(
        tensor_parallel_dims(data_.mesh, data_.options.recipe));
    seeds_.follow();
    data_.demanded_shardings = seeds_.list();
  }

  // Weights do not have the dims that views merge, so a weight in mesh order
  // demands nothing.
  void demand_pinned(const Value& value, const Layout& layout) {
    const bool is_weight =
        value.input_kind && value.input_kind != InputKind::kUser;
    const bool in_mesh_order =
        !layout.has_strided() && layout.has_default_order();
    if (!is_weight || !in_mesh_order) seeds_.demand(value.id, layout);
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
      const OperatorChoices& found = choices_of(node, meets);
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
      // The readers of a view of a pinned input are pinned, too.
      if (is_free_view(node)) pinned_->see_view(node, *found.set);
    }
    find_in_place();
    const KernelRule rule = data_.options.fusion == Fusion::kCompiler
                                ? KernelRule::kCompiler
                                : KernelRule::kEager;
    std::vector<Fusing> fusing(graph_.nodes().size(), Fusing::kCuts);
    for (const Node& node : graph_.nodes()) {
      const auto& set = data_.choices_of_node[node.id.index()];
      if (set == nullptr) continue;
      fusing[node.id.index()] =
          fusing_of(graph_, node, *set->op.space, set->unsupported.empty(),
                    in_place_->operand(node).has_value(), rule);
    }
    data_.fusion = std::make_shared<FusionGroups>(graph_, fusing, rule);
    return {};
  }

  // Returns the choices of the operator in the space that is built. If it lacks
  // a layout that a pin asks for, they are those of the named space: a plan of
  // a smaller space keeps the pins that a plan of the named space keeps. If it
  // lacks the given strategy, the saved plan has it because of a pin.
  const OperatorChoices& choices_of(const Node& node,
                                    const std::vector<PartialSet>& meets) {
    const OperatorDemands& demands = seeds_.of(node.id);
    if (is_pinned(node)) return pinnable_.of(node.op, meets, demands);
    const OperatorChoices& own = choices_.of(node.op, meets, demands);
    if (data_.set_up.space.is_named()) return own;
    if (given_ != nullptr) {
      return strategies_->of(node, *own.set, {})
                 ? own
                 : pinnable_.of(node.op, meets, demands);
    }
    const PinnedChoices::Taken taken = pinned_->taken(node, own.set);
    if (taken.kept == taken.all) return own;
    const OperatorChoices& all = pinnable_.of(node.op, meets, demands);
    return pinned_->taken(node, all.set).kept > taken.kept ? all : own;
  }

  // A graph without repeated blocks is divided by the work of its operators: the
  // product of the sizes of their factors.
  void find_windows() {
    std::vector<std::int64_t> work(graph_.nodes().size(), 1);
    for (std::size_t n = 0; n < work.size(); ++n) {
      if (found_[n] == nullptr) continue;
      const IndexSpace& space = *found_[n]->set->op.space;
      if (space.is_free) continue;
      for (const Factor& factor : space.factors) {
        if (!factor.joins.empty()) continue;
        work[n] = sat_mul(work[n], std::max<std::int64_t>(factor.size, 1));
      }
    }
    data_.windows =
        Windows(graph_, Blocks(graph_, work, tuning::kPartsWithoutRepetition));
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
      SP_ASSIGN(Recipe recipe, on_mesh(*data_.options.recipe, data_.mesh));
      recipe_.emplace(std::move(recipe), data_);
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
    for (const Node& node : graph_.nodes()) {
      const OperatorChoices* found = found_[node.id.index()];
      if (found == nullptr) continue;
      SP_CHECK(data_.check_stop());
      auto set = pinned_->that_make(node, priced(node, *found));
      const bool is_view = is_free_view(node);
      if (given_ != nullptr && !is_view) {
        SP_ASSIGN(set, strategies_->of(node, *set, located(node)));
      } else if (!is_view) {
        set = pinned_->that_take(node, std::move(set));
        if (recipe_) set = recipe_->that_follow(node, set);
        if (is_forced(node)) {
          SP_ASSIGN(set, forced_choice(data_, node, *set, located(node)));
        }
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

  // Returns whether the node is a view without a variable of its own. A view
  // that is pinned, or that nothing reads, chooses its own layout.
  bool is_free_view(const Node& node) const {
    return is_whole_view(graph_, node) &&
           pinned_->produced(node.outputs[0]) == nullptr &&
           read_[node.outputs[0].index()];
  }

  // Returns, by value, whether an operator reads it or it is an output.
  static std::vector<bool> read_values(const Graph& graph) {
    std::vector<bool> read;
    for (const Value& value : graph.values()) {
      read.push_back(!value.consumers.empty());
    }
    for (const GraphOutput& output : graph.outputs()) {
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

  bool is_forced(const Node& node) const {
    const auto& forced = data_.options.forced;
    return forced && forced->node == node.id;
  }

  static std::string located(const Node& node) {
    if (node.source.empty()) return node.module_path;
    const std::string source = to_string(node.source);
    if (node.module_path.empty()) return source;
    return node.module_path + " (" + source + ")";
  }

  ProblemData& data_;
  const Graph& graph_;
  const std::vector<bool> read_;  // by value: whether anything reads it
  BufferForest forest_;
  InputOutputVariables inputs_and_outputs_;
  OperatorChoiceCache choices_;
  std::vector<const OperatorChoices*> found_;  // by node
  std::optional<InPlace> in_place_;            // once all choices are collected
  OperatorChoiceCache pinnable_;
  ShardingSeeds seeds_;
  const GivenChoices* given_;
  std::optional<GivenStrategies> strategies_;  // of the given choices
  std::optional<RecipeChoices> recipe_;        // if the options ask for one
  std::optional<PinnedChoices> pinned_;
};

Result<PlanProblem> PlanProblem::create(const Graph& graph, DeviceMesh mesh,
                                        Topology topology,
                                        const OpLibrary& library,
                                        const PlanOptions& options,
                                        const SetUp& set_up) {
  SP_CHECK(validate(options));
  SP_CHECK(check_topology(topology));
  return guarded([&]() -> Result<PlanProblem> {
    if (options.fusion == Fusion::kNone) {
      topology = with_eager_kernels(std::move(topology));
    }
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

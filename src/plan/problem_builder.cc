#include "base/guard.h"
#include "base/try.h"
#include "plan/given_choices.h"
#include "plan/layout_relations.h"
#include "plan/operator_choices.h"
#include "plan/overwriting.h"
#include "plan/pinned_values.h"
#include "plan/problem_body.h"
#include "plan/stop.h"
#include "plan/storages.h"

#include <shardprop/mesh/update_cost.h>

#include <algorithm>
#include <map>
#include <set>
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

constexpr double kF32Bytes = 4;

// The same values under another shape or dtype.
bool carries_through(const Graph& graph, const Node& node) {
  return node.inputs.size() == 1 && node.outputs.size() == 1 &&
         (graph.value(node.outputs[0]).is_view() ||
          node.op.function->base_name() == "_to_copy");
}

// More inputs than PyTorch's compiler writes side by side from one kernel
// (torch/_inductor/config.py, max_pointwise_cat_inputs).
constexpr std::size_t kMostJoined = 8;

// Products, attention, random numbers, scans and writes into a part of a tensor
// are kernels of their own; so is what is not understood.
Fusing fusing_of(const ChoiceSet& set) {
  const IndexSpace& space = *set.op.space;
  if (space.is_free) return Fusing::kView;
  const bool scans = std::any_of(
      space.factors.begin(), space.factors.end(),
      [](const Factor& factor) { return factor.kind == FactorKind::kScanned; });
  const bool alone = space.flops_per_point > 0 || space.is_random || scans ||
                     space.writes_into != IndexSpace::kNothing ||
                     space.inputs.size() > kMostJoined ||
                     !set.unsupported.empty();
  return alone ? Fusing::kNever : Fusing::kCompute;
}

// Some of the choices of a set.
std::shared_ptr<ChoiceSet> of_choices(const ChoiceSet& set,
                                      const std::vector<std::size_t>& kept) {
  auto out = std::make_shared<ChoiceSet>();
  out->layouts = set.layouts;
  out->num_uses = set.num_uses;
  out->op = set.op;
  out->op.strategies.clear();
  out->unsupported = set.unsupported;
  const std::size_t operands = set.layouts.size();
  for (const std::size_t c : kept) {
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
  std::vector<std::size_t> kept;
  for (std::size_t c = 0; c < set.size(); ++c) {
    if (set.layout(c, operand) == wanted) kept.push_back(c);
  }
  return of_choices(set, kept);
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
    SP_ASSIGN(pinned_, pinned_values(graph_, body_.mesh, body_.options.pins));
    if (given_ != nullptr) {
      for (const std::vector<Layout>& layouts : given_->copies) {
        body_.copied_to.push_back(interned(layouts));
      }
    }
    for (const GraphOutput& output : graph_.outputs()) {
      if (is_tie(output)) ties_[output.target].push_back(output);
    }
    body_.values.resize(graph_.values().size());
    mark_hideable();
    set_tensors();
    add_inputs();
    SP_CHECK(add_operators());
    choose_input_layouts();
    add_outputs();
    SP_CHECK(build_storages(body_, forest_));
    if (const auto& refusal = body_.moves.refusal()) return fail(*refusal);
    return {};
  }

 private:
  void set_tensors() {
    const std::set<ValueId> wide = f32_gradients();
    for (const Value& value : graph_.values()) {
      PlanValue& planned = body_.values[value.id.index()];
      TensorMeta meta = value.meta;
      if (wide.contains(value.id)) {
        if (auto widened = TensorMeta::contiguous(meta.shape(), DType::kF32)) {
          meta = *std::move(widened);
        }
      }
      planned.tensor = body_.moves.tensor_class(meta, planned.hideable);
    }
  }

  // Values that are nothing but the gradient of a parameter kept in f32, on its
  // way out, their whole storage with them.
  std::set<ValueId> f32_gradients() const {
    std::set<ValueId> found;
    if (!keeps_f32(body_.options)) return found;
    for (const GraphOutput& output : graph_.outputs()) {
      if (output.kind != OutputKind::kGradient ||
          !graph_.value(output.target).roles.has(ValueRole::kParameter) ||
          item_size(graph_.value(output.target).meta.dtype()) != 2) {
        continue;
      }
      for (ValueId at = output.value; body_.values[at.index()].hideable;) {
        if (item_size(graph_.value(at).meta.dtype()) != 2) break;
        found.insert(at);
        const Value& value = graph_.value(at);
        if (value.is_input()) break;
        const Node& node = graph_.node(value.producer);
        if (!carries_through(graph_, node)) break;
        at = node.inputs[0];
      }
    }
    std::erase_if(found, [&](ValueId value) {
      const Storage& storage = graph_.storage(graph_.value(value).storage);
      return !std::all_of(storage.values.begin(), storage.values.end(),
                          [&](ValueId other) { return found.contains(other); });
    });
    return found;
  }

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

  // The choices of every node but assertions, and how nodes go together.
  Result<void> find_choices() {
    std::vector<PartialSet> comes_as(graph_.values().size(), 0);
    found_.resize(graph_.nodes().size());
    std::vector<Fusing> fusing(graph_.nodes().size(), Fusing::kNever);
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
      fusing[node.id.index()] = fusing_of(*found.set);
    }
    if (body_.options.fusion == Fusion::kCompiler) {
      body_.fusion.emplace(graph_, fusing);
    }
    return {};
  }

  // Priced as it stands: with what it overwrites, or in its kernel.
  std::shared_ptr<const ChoiceSet> priced(const Node& node,
                                          const OperatorChoices& found,
                                          const Overwriting& overwriting) {
    const int into = found.set->op.space->writes_into;
    if (into != IndexSpace::kNothing) {
      if (!overwriting.may(node, static_cast<std::size_t>(into))) {
        return found.keeping;
      }
      body_.writes_into[node.id.index()] = into;
      return found.set;
    }
    if (!body_.fusion || found.set->op.space->is_free ||
        body_.fusion->group(node.id) == FusionGroups::kAlone) {
      return found.set;
    }
    return choices_.fused(found.set, body_.fusion->part(node));
  }

  Result<void> add_operators() {
    SP_CHECK(find_choices());
    body_.of_node.resize(graph_.nodes().size());
    body_.choices_of_node.resize(graph_.nodes().size());
    body_.writes_into.resize(graph_.nodes().size(), IndexSpace::kNothing);
    const Overwriting overwriting(graph_);
    for (const Node& node : graph_.nodes()) {
      const OperatorChoices* found = found_[node.id.index()];
      if (found == nullptr) continue;
      SP_ASSIGN(auto set,
                pinned_choices(node, priced(node, *found, overwriting)));
      const bool is_view = StorageForest::keeps_every_element(graph_, node) &&
                           !pinned_.contains(node.outputs[0]);
      if (given_ != nullptr && !is_view) {
        SP_ASSIGN(set, given_choice(node, *set));
      }
      body_.choices_of_node[node.id.index()] = set;
      if (is_view) {
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
      std::vector<std::size_t> fitting;
      for (std::size_t c = 0; c < set.size() && fitting.empty(); ++c) {
        bool fits = true;
        for (std::size_t o = 0; o < ids.size() && fits; ++o) {
          fits = set.layout(c, o) == ids[o];
        }
        if (fits) fitting.push_back(c);
      }
      kept = without_spare_layouts(of_choices(set, fitting));
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

  // What is pinned may be laid out in any way of the named space.
  bool is_pinned(const Node& node) const {
    return std::any_of(
        node.outputs.begin(), node.outputs.end(),
        [&](ValueId output) { return pinned_.contains(output); });
  }

  static std::string located(const Node& node) {
    if (node.source.empty()) return node.module_path;
    return node.module_path + " (" + to_string(node.source) + ")";
  }

  Result<std::shared_ptr<const ChoiceSet>> pinned_choices(
      const Node& node, std::shared_ptr<const ChoiceSet> set) {
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      const auto pin = pinned_.find(node.outputs[o]);
      if (pin == pinned_.end()) continue;
      const std::size_t operand = set->num_uses + o;
      const LayoutId wanted = body_.layouts.intern(pin->second.layout);
      auto& kept = pinned_choices_[{set.get(), operand, wanted}];
      if (!kept) kept = restricted(*set, operand, wanted);
      if (kept->size() == 0) {
        return fail(no_strategy(node, o, *set, pin->second));
      }
      set = kept;
    }
    return set;
  }

  Error no_strategy(const Node& node, std::size_t output, const ChoiceSet& set,
                    const PinnedValue& wanted) const {
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
                 "--pin '" + to_string(wanted.pin) + "'",
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
      if (const auto pin = pinned_.find(value.id); pin != pinned_.end()) {
        layouts = {body_.layouts.intern(pin->second.layout)};
      } else {
        add_whole_layouts(wanted[value.id.index()].layouts(), layouts);
      }
      if (given_ != nullptr) {
        layouts = interned(given_->inputs[variable.index]);
      }
      const bool trained =
          graph_.inputs()[variable.index].kind == InputKind::kParameter &&
          !variable.uses.empty() && body_.options.optimizer != Optimizer::kNone;
      auto& shared = input_choices_[{
          layouts, kinds_of_ties(value.id),
          trained ? 3 * (1 + body_.values[value.id.index()].tensor) +
                        static_cast<std::uint32_t>(passes_of_casts(value.id))
                  : 0}];
      if (!shared) {
        shared = trained
                     ? trained_parameter(value, layouts)
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

  // The gradient and the optimizer's state lie as the parameter does, or in
  // smaller shards; then the parameter is gathered after its update. The step
  // reads and writes parameter, gradient and state once, fused. A parameter
  // that is kept in f32 is also written in 16 bits: behind the update where
  // that is gathered, and for each segment of uses where it lies alike.
  std::shared_ptr<const ChoiceSet> trained_parameter(
      const Value& value, const std::vector<LayoutId>& layouts) {
    const std::vector<GraphOutput>& ties = ties_.at(value.id);
    auto set = std::make_shared<ChoiceSet>();
    set->num_uses = ties.size();
    set->layouts.assign(ties.size() + 1, layouts);
    const PlanValue& planned = body_.values[value.id.index()];
    const UpdateCost& update = body_.options.optimizer == Optimizer::kAdamW
                                   ? kAdamWUpdate
                                   : kSgdUpdate;
    const auto item = static_cast<double>(item_size(value.meta.dtype()));
    const bool wide = keeps_f32(body_.options) && item == 2;
    const double kept = wide ? kF32Bytes : item;
    const double casts = passes_of_casts(value.id);
    for (std::size_t state = 0; state < layouts.size(); ++state) {
      const double elements = static_cast<double>(body_.moves.local_bytes(
                                  planned.tensor, layouts[state])) /
                              item;
      for (std::size_t own = 0; own < layouts.size(); ++own) {
        if (!gathers(body_.layouts[layouts[state]],
                     body_.layouts[layouts[own]])) {
          continue;
        }
        double bytes = update.passes * kept;
        if (wide) bytes += own == state ? casts * (kF32Bytes + item) : item;
        const std::int64_t step =
            compute_nanoseconds(body_.topology, MathClass::kF32,
                                update.flops * elements, bytes * elements);
        const bool accumulates = body_.options.accumulate > 1;
        for (const bool late : {false, true}) {
          if (late && !accumulates) continue;
          for (const GraphOutput& tie : ties) {
            set->picks.push_back(static_cast<std::uint32_t>(
                tie.kind == OutputKind::kGradient ? state : own));
          }
          set->picks.push_back(static_cast<std::uint32_t>(own));
          set->costs.push_back(body_.share_of_step(step) +
                               body_.share_of_step(body_.move_nanoseconds(
                                   planned, layouts[state], layouts[own])));
          set->hidden.push_back(body_.share_of_step(body_.hideable_nanoseconds(
              planned, layouts[state], layouts[own])));
          set->state_layouts.push_back(layouts[state]);
          if (accumulates) set->reduced_late.push_back(late);
        }
      }
    }
    return set;
  }

  // Once in the forward pass, once in the backward pass, where it is used.
  double passes_of_casts(ValueId parameter) const {
    bool forward = false;
    bool backward = false;
    for (const ValueId value :
         graph_.storage(graph_.value(parameter).storage).values) {
      for (const Use& use : graph_.value(value).consumers) {
        const bool is_forward = graph_.node(use.node).phase == Phase::kForward;
        (is_forward ? forward : backward) = true;
      }
    }
    return (forward ? 1 : 0) + (backward ? 1 : 0);
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
      const bool pinned = pinned_.contains(output.value);
      if (!pinned) layouts.push_back(replicated);
      add_whole_layouts(made[output.value.index()], layouts);
      if (pinned) {
        // Handed back as it was asked for, unless that is a partial.
        layouts.assign(1,
                       body_.layouts.intern(pinned_.at(output.value).layout));
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

  void mark_hideable() {
    for (const GraphInput& input : graph_.inputs()) {
      if (input.kind == InputKind::kParameter) {
        body_.values[input.value.index()].hideable = true;
      }
    }
    for (const Node& node : graph_.nodes()) {
      if (carries_through(graph_, node) &&
          body_.values[node.inputs[0].index()].hideable) {
        body_.values[node.outputs[0].index()].hideable = true;
      }
    }
    for (const GraphOutput& output : graph_.outputs()) {
      if (output.kind != OutputKind::kGradient) continue;
      ValueId at = output.value;
      while (true) {
        body_.values[at.index()].hideable = true;
        const Value& value = graph_.value(at);
        if (value.is_input()) break;
        const Node& node = graph_.node(value.producer);
        if (!carries_through(graph_, node) ||
            graph_.value(node.inputs[0]).consumers.size() != 1) {
          break;
        }
        at = node.inputs[0];
      }
    }
  }

  PlanProblem::Body& body_;
  const Graph& graph_;
  StorageForest forest_;
  OperatorChoiceCache choices_;
  std::vector<const OperatorChoices*> found_;  // by node
  OperatorChoiceCache pinnable_;
  const GivenChoices* given_;
  std::map<ValueId, PinnedValue> pinned_;
  std::map<ValueId, std::vector<GraphOutput>> ties_;
  // By layouts, ties and, of trained parameters, the tensor class and how often
  // it is cast.
  std::map<
      std::tuple<std::vector<LayoutId>, std::vector<OutputKind>, std::uint32_t>,
      std::shared_ptr<const ChoiceSet>>
      input_choices_;
  // By unrestricted choices, operand and layout.
  std::map<std::tuple<const ChoiceSet*, std::size_t, LayoutId>,
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
              RedistributePlanner::create(mesh, topology,
                                          {.bucket_bytes = kBucketBytes}));
    auto body = std::make_unique<Body>(graph, std::move(mesh),
                                       std::move(topology), options, set_up,
                                       std::move(planner), std::move(bucketed));
    SP_CHECK(PlanProblemBuilder(*body, library).build());
    return PlanProblem(std::move(body));
  });
}

}  // namespace shardprop

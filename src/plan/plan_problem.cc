#include <shardprop/plan/plan_problem.h>

#include "base/try.h"
#include "plan/move_costs.h"
#include "plan/operator_choices.h"
#include "plan/pinned_values.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

namespace shardprop {

void ChoiceSet::seal() {
  extra.assign(layouts.size(), {});
  by_cost.resize(costs.size());
  std::iota(by_cost.begin(), by_cost.end(), 0U);
  std::stable_sort(
      by_cost.begin(), by_cost.end(),
      [&](std::uint32_t a, std::uint32_t b) { return costs[a] < costs[b]; });
  if (costs.empty()) return;
  const std::int64_t least = *std::min_element(costs.begin(), costs.end());
  for (std::size_t o = 0; o < layouts.size(); ++o) {
    extra[o].assign(layouts[o].size(), kUnreachable);
    for (std::size_t c = 0; c < costs.size(); ++c) {
      std::int64_t& entry = extra[o][pick(c, o)];
      entry = std::min(entry, costs[c] - least);
    }
  }
}

struct PlanProblem::Body {
  Body(const Graph& the_graph, DeviceMesh the_mesh, Topology the_topology,
       PlanOptions the_options, RedistributePlanner planner)
      : graph(the_graph),
        mesh(std::move(the_mesh)),
        topology(std::move(the_topology)),
        options(std::move(the_options)),
        moves(std::move(planner), layouts) {}

  const Graph& graph;
  DeviceMesh mesh;
  Topology topology;
  PlanOptions options;
  LayoutTable layouts;
  MoveCosts moves;
  std::vector<PlanVariable> variables;
  std::vector<PlanVariableId> of_node;
  std::vector<PlanValue> values;
};

namespace {

// Checks of the program itself, which move and make nothing.
bool is_assertion(const Node& node) {
  const std::string_view name = node.op.function->base_name();
  return node.outputs.empty() &&
         (name.starts_with("_assert") || name.starts_with("sym_constrain"));
}

// The same values under another shape or dtype.
bool carries_through(const Graph& graph, const Node& node) {
  return node.inputs.size() == 1 && node.outputs.size() == 1 &&
         (graph.value(node.outputs[0]).is_view() ||
          node.op.function->base_name() == "_to_copy");
}

// A set with the operand's layout fixed; empty when no choice has it.
std::shared_ptr<ChoiceSet> restricted(const ChoiceSet& set, std::size_t operand,
                                      LayoutId wanted) {
  auto out = std::make_shared<ChoiceSet>();
  out->layouts = set.layouts;
  out->num_uses = set.num_uses;
  out->op = set.op;
  out->op.strategies.clear();
  out->unsupported = set.unsupported;
  const std::size_t operands = set.layouts.size();
  for (std::size_t c = 0; c < set.size(); ++c) {
    if (set.layout(c, operand) != wanted) continue;
    const auto row =
        set.picks.begin() + static_cast<std::ptrdiff_t>(c * operands);
    out->picks.insert(out->picks.end(), row,
                      row + static_cast<std::ptrdiff_t>(operands));
    out->costs.push_back(set.costs[c]);
    out->op.strategies.push_back(set.op.strategies[c]);
  }
  out->seal();
  return out;
}

// A choice a layout, the same for every operand.
std::shared_ptr<ChoiceSet> same_layout_everywhere(
    const std::vector<LayoutId>& layouts, std::size_t uses, std::size_t makes) {
  auto set = std::make_shared<ChoiceSet>();
  set->num_uses = uses;
  set->layouts.assign(uses + makes, layouts);
  for (std::size_t c = 0; c < layouts.size(); ++c) {
    set->picks.insert(set->picks.end(), uses + makes,
                      static_cast<std::uint16_t>(c));
  }
  set->costs.assign(layouts.size(), 0);
  set->seal();
  return set;
}

}  // namespace

class PlanProblemBuilder {
 public:
  PlanProblemBuilder(PlanProblem::Body& body, const RuleBook& rules,
                     const OpRegistry& registry)
      : body_(body),
        graph_(body.graph),
        choices_(body.mesh, body.topology, rules, registry, body.layouts) {}

  Result<void> build() {
    SP_ASSIGN(pinned_, pinned_values(graph_, body_.mesh, body_.options.pins));
    for (const GraphOutput& output : graph_.outputs()) {
      if (is_tie(output)) ties_[output.target].push_back(output.value);
    }
    add_inputs();
    SP_CHECK(add_operators());
    choose_input_layouts();
    add_outputs();
    for (std::size_t v = 0; v < body_.variables.size(); ++v) wire(v);
    for (const Value& value : graph_.values()) {
      body_.values[value.id.index()].tensor =
          body_.moves.tensor_class(value.meta);
    }
    mark_hideable();
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
    body_.values.resize(graph_.values().size());
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
      const ValueId value = graph_.inputs()[i].value;
      PlanVariable variable;
      variable.kind = PlanVariable::Kind::kInput;
      variable.index = i;
      if (const auto tied = ties_.find(value); tied != ties_.end()) {
        variable.uses = tied->second;
      }
      variable.makes = {value};
      body_.variables.push_back(std::move(variable));
    }
  }

  Result<void> add_operators() {
    std::vector<PartialSet> comes_as(graph_.values().size(), 0);
    body_.of_node.resize(graph_.nodes().size());
    for (const Node& node : graph_.nodes()) {
      if (is_assertion(node)) continue;
      std::vector<PartialSet> meets;
      meets.reserve(node.inputs.size());
      for (const ValueId input : node.inputs) {
        meets.push_back(comes_as[input.index()]);
      }
      const OperatorChoices& found = choices_.of(node.op, meets);
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
      SP_ASSIGN(auto set, pinned_choices(node, found.set));
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

  static std::string located(const Node& node) {
    if (node.source.empty()) return node.module_path;
    return node.module_path + " (" + to_string(node.source) + ")";
  }

  Result<std::shared_ptr<const ChoiceSet>> pinned_choices(
      const Node& node, std::shared_ptr<const ChoiceSet> set) {
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      const auto pin = pinned_.find(node.outputs[o]);
      if (pin == pinned_.end()) continue;
      auto kept = restricted(*set, set->num_uses + o,
                             body_.layouts.intern(pin->second.layout));
      if (kept->size() == 0) {
        return fail(no_strategy(node, o, *set, pin->second));
      }
      set = std::move(kept);
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
    for (PlanVariable& variable : body_.variables) {
      if (variable.kind != PlanVariable::Kind::kInput) continue;
      const Value& value = graph_.value(variable.makes[0]);
      std::vector<LayoutId> layouts{replicated};
      if (const auto pin = pinned_.find(value.id); pin != pinned_.end()) {
        layouts = {body_.layouts.intern(pin->second.layout)};
      } else {
        for (const Use& use : value.consumers) {
          const PlanVariableId user = body_.of_node[use.node.index()];
          if (!user.valid()) continue;
          add_whole_layouts(
              body_.variables[user.index()].choices->layouts[use.operand],
              layouts);
        }
      }
      auto set = same_layout_everywhere(layouts, variable.uses.size(), 1);
      if (graph_.inputs()[variable.index].kind == InputKind::kParameter &&
          !variable.uses.empty()) {
        add_optimizer(value, *set);
      }
      variable.choices = std::move(set);
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

  // Its step reads and writes parameter, gradient and state once, fused.
  void add_optimizer(const Value& value, ChoiceSet& set) {
    if (body_.options.optimizer == Optimizer::kNone) return;
    const bool adamw = body_.options.optimizer == Optimizer::kAdamW;
    const double passes = adamw ? 7 : 3;
    const double flops = adamw ? 15 : 2;
    const std::uint32_t tensor = body_.moves.tensor_class(value.meta);
    for (std::size_t c = 0; c < set.size(); ++c) {
      const auto bytes = static_cast<double>(
          body_.moves.local_bytes(tensor, set.layout(c, 0)));
      set.costs[c] += compute_nanoseconds(
          body_.topology, MathClass::kF32,
          flops * bytes / static_cast<double>(item_size(value.meta.dtype())),
          passes * bytes);
    }
    set.seal();
  }

  void add_outputs() {
    const LayoutId replicated =
        body_.layouts.intern(Layout::replicated(body_.mesh.ndim()));
    std::vector<PlanVariableId> maker(graph_.values().size());
    std::vector<std::size_t> operand(graph_.values().size());
    for (std::size_t v = 0; v < body_.variables.size(); ++v) {
      const PlanVariable& variable = body_.variables[v];
      for (std::size_t o = 0; o < variable.makes.size(); ++o) {
        maker[variable.makes[o].index()] = PlanVariableId(v);
        operand[variable.makes[o].index()] = variable.uses.size() + o;
      }
    }
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      const GraphOutput& output = graph_.outputs()[i];
      if (is_tie(output)) continue;
      const std::size_t value = output.value.index();
      std::vector<LayoutId> layouts;
      const bool pinned = pinned_.contains(output.value);
      if (!pinned) layouts.push_back(replicated);
      add_whole_layouts(body_.variables[maker[value].index()]
                            .choices->layouts[operand[value]],
                        layouts);
      if (pinned) {
        // Handed back as it was asked for, unless that is a partial.
        layouts.assign(1,
                       body_.layouts.intern(pinned_.at(output.value).layout));
        if (body_.layouts[layouts[0]].has_partial()) layouts[0] = replicated;
      }
      PlanVariable variable;
      variable.kind = PlanVariable::Kind::kOutput;
      variable.index = i;
      variable.choices = same_layout_everywhere(layouts, 1, 0);
      variable.uses = {output.value};
      body_.variables.push_back(std::move(variable));
    }
  }

  void wire(std::size_t v) {
    const PlanVariable& variable = body_.variables[v];
    for (std::size_t u = 0; u < variable.uses.size(); ++u) {
      body_.values[variable.uses[u].index()].uses.push_back(
          {PlanVariableId(v), static_cast<std::uint32_t>(u)});
    }
    for (std::size_t o = 0; o < variable.makes.size(); ++o) {
      PlanValue& value = body_.values[variable.makes[o].index()];
      value.maker = PlanVariableId(v);
      value.operand = static_cast<std::uint32_t>(variable.uses.size() + o);
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
  OperatorChoiceCache choices_;
  std::map<ValueId, PinnedValue> pinned_;
  std::map<ValueId, std::vector<ValueId>> ties_;
};

Result<PlanProblem> PlanProblem::create(const Graph& graph, DeviceMesh mesh,
                                        Topology topology,
                                        const RuleBook& rules,
                                        const OpRegistry& registry,
                                        const PlanOptions& options) {
  SP_ASSIGN(RedistributePlanner planner,
            RedistributePlanner::create(mesh, topology));
  auto body = std::make_unique<Body>(
      graph, std::move(mesh), std::move(topology), options, std::move(planner));
  SP_CHECK(PlanProblemBuilder(*body, rules, registry).build());
  return PlanProblem(std::move(body));
}

PlanProblem::PlanProblem(std::unique_ptr<Body> body) : body_(std::move(body)) {}
PlanProblem::PlanProblem(PlanProblem&&) noexcept = default;
PlanProblem& PlanProblem::operator=(PlanProblem&&) noexcept = default;
PlanProblem::~PlanProblem() = default;

const Graph& PlanProblem::graph() const { return body_->graph; }
const DeviceMesh& PlanProblem::mesh() const { return body_->mesh; }
const Topology& PlanProblem::topology() const { return body_->topology; }
const PlanOptions& PlanProblem::options() const { return body_->options; }
const LayoutTable& PlanProblem::layouts() const { return body_->layouts; }

std::span<const PlanVariable> PlanProblem::variables() const {
  return body_->variables;
}
const PlanVariable& PlanProblem::variable(PlanVariableId id) const {
  return body_->variables[id.index()];
}
const PlanValue& PlanProblem::value(ValueId id) const {
  return body_->values[id.index()];
}
PlanVariableId PlanProblem::variable_of(NodeId node) const {
  return body_->of_node[node.index()];
}

std::int64_t PlanProblem::move_nanoseconds(ValueId value, LayoutId src,
                                           LayoutId dst) const {
  const std::int64_t transfer =
      body_->moves.nanoseconds(this->value(value).tensor, src, dst);
  if (transfer >= kUnreachable) return kUnreachable;
  return transfer - hidden_nanoseconds(value, transfer);
}

std::int64_t PlanProblem::hidden_nanoseconds(ValueId value,
                                             std::int64_t transfer) const {
  if (!this->value(value).hideable) return 0;
  return std::llround(static_cast<double>(transfer) * body_->options.overlap);
}

RedistributePlan PlanProblem::redistribution(ValueId value, LayoutId src,
                                             LayoutId dst) const {
  return body_->moves.plan(this->value(value).tensor, src, dst);
}

std::int64_t PlanProblem::optimizer_tensors() const {
  return body_->options.optimizer == Optimizer::kAdamW ? 2 : 0;
}

std::int64_t PlanProblem::resident_bytes(ValueId value, LayoutId layout) const {
  const PlanVariable& maker = variable(this->value(value).maker);
  std::int64_t tensors = 1;
  if (maker.kind == PlanVariable::Kind::kInput && !maker.uses.empty()) {
    tensors += static_cast<std::int64_t>(maker.uses.size());
    if (graph().inputs()[maker.index].kind == InputKind::kParameter) {
      tensors += optimizer_tensors();
    }
  }
  return tensors * local_bytes(value, layout);
}

std::int64_t PlanProblem::local_bytes(ValueId value, LayoutId layout) const {
  return body_->moves.local_bytes(this->value(value).tensor, layout);
}

}  // namespace shardprop

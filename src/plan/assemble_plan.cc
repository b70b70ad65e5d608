#include <shardprop/plan/make_plan.h>

#include "plan/reasons.h"
#include "plan/storage_views.h"

#include <shardprop/base/error.h>

#include <fmt/format.h>

#include <map>
#include <utility>

namespace shardprop {
namespace {

std::string_view role_of(InputKind kind) {
  switch (kind) {
    case InputKind::kParameter:
      return "parameter";
    case InputKind::kBuffer:
      return "buffer";
    case InputKind::kConstant:
      return "constant";
    case InputKind::kUser:
      return "user_input";
  }
  return "user_input";
}

std::string_view kind_of(OutputKind kind) {
  switch (kind) {
    case OutputKind::kUser:
      return "user";
    case OutputKind::kLoss:
      return "loss";
    case OutputKind::kGradient:
      return "gradient";
    case OutputKind::kUpdate:
      return "update";
  }
  return "user";
}

class Assembler {
 public:
  Assembler(const PlanProblem& problem, const PlanSolution& solution)
      : problem_(problem),
        graph_(problem.graph()),
        plan_(*solution.assignment),
        views_(problem, plan_),
        users_(users_of_copies(problem, plan_)),
        alternatives_(problem, plan_) {}

  void fill(Plan& plan) {
    for (std::size_t c = 0; c < plan_.copies.size(); ++c) {
      ids_[{value_of(c), c}] = c;
      made_.emplace_back();
    }
    for (std::size_t c = 0; c < plan_.copies.size(); ++c) {
      PlannedCopy copy = planned_copy(c);  // which may add to made_
      made_[c] = std::move(copy);
    }
    add_values(plan);
    for (const Node& node : graph_.nodes()) plan.nodes.push_back(planned(node));
    add_outputs(plan);
    add_updates(plan);
    plan.copies = std::move(made_);
  }

 private:
  const Layout& text(LayoutId id) const { return problem_.layouts()[id]; }
  const std::string& name(ValueId value) const {
    return graph_.value(value).display_name();
  }
  ValueId value_of(std::size_t copy) const {
    const AssignedCopy& of = plan_.copies[copy];
    return problem_.storage(of.storage).values[of.value];
  }

  PlannedTensor tensor(ValueId value, LayoutId layout) const {
    const TensorMeta& meta = graph_.value(value).meta;
    return {meta.shape(), meta.dtype(), text(layout)};
  }

  // The entry of a copy as the value it is taken as: its own, or one that says
  // that the same data is seen as another value.
  std::size_t entry(ValueId value, std::size_t copy) {
    const auto [known, fresh] = ids_.try_emplace({value, copy}, made_.size());
    if (!fresh) return known->second;
    PlannedCopy seen;
    seen.from = name(value);
    seen.src = seen.dst = text(views_.layout(value, copy));
    seen.source = copy;
    seen.made_at = plan_.copies[copy].made_at;
    seen.freed_at = plan_.copies[copy].freed_at;
    seen.reason = "a view of the copy of `" + name(value_of(copy)) + "`";
    made_.push_back(std::move(seen));
    return known->second;
  }

  PlannedInput taken(ValueId value, const std::optional<std::size_t>& copy) {
    PlannedInput input{name(value), text(views_.layout(value, copy)), {}};
    if (copy && copy != views_.copy_behind(value)) {
      input.copy = entry(value, *copy);
    }
    return input;
  }

  void add_values(Plan& plan) const {
    for (std::size_t v = 0; v < problem_.variables().size(); ++v) {
      const PlanVariable& variable = problem_.variables()[v];
      if (variable.kind != PlanVariable::Kind::kInput) continue;
      const GraphInput& input = graph_.inputs()[variable.index];
      PlannedValue value{name(input.value),
                         std::string(role_of(input.kind)),
                         tensor(input.value, views_.layout(input.value, {})),
                         {}};
      if (const auto& states = variable.choices->state_layouts;
          !states.empty()) {
        const Layout& state = text(states[plan_.choices[v]]);
        if (!(state == value.tensor.layout)) value.state_layout = state;
      }
      plan.values.push_back(std::move(value));
    }
  }

  PlannedCopy planned_copy(std::size_t c) {
    const AssignedCopy& assigned = plan_.copies[c];
    const ValueId value = value_of(c);
    const LayoutId src = views_.layout(value, assigned.source);
    const LayoutId dst = views_.layout(value, c);
    PlannedCopy copy = moved(value, src, dst);
    copy.made_at = assigned.made_at;
    copy.freed_at = assigned.freed_at;
    if (assigned.source && assigned.source != views_.copy_behind(value)) {
      copy.source = entry(value, *assigned.source);
    }
    CopyReason reason = reason_of(problem_, plan_, c, users_[c], alternatives_);
    copy.reason = std::move(reason.text);
    copy.alternative_nanoseconds = reason.alternative_nanoseconds;
    return copy;
  }

  PlannedCopy moved(ValueId value, LayoutId src, LayoutId dst) const {
    PlannedCopy copy;
    copy.from = name(value);
    copy.src = text(src);
    copy.dst = text(dst);
    RedistributePlan moves = problem_.redistribution(value, src, dst);
    copy.steps = std::move(moves.steps);
    copy.hidden_nanoseconds =
        problem_.hidden_nanoseconds(value, moves.nanoseconds);
    return copy;
  }

  // What operand `use` of a variable takes.
  std::optional<std::size_t> taken_by(PlanVariableId variable,
                                      std::size_t use) const {
    const ValueId value = problem_.variable(variable).uses[use];
    const PlanStorageId id = problem_.value(value).storage;
    const std::vector<StorageUse>& uses = problem_.storage(id).uses;
    for (std::size_t u = 0; u < uses.size(); ++u) {
      if (uses[u].variable == variable && uses[u].operand == use) {
        return plan_.taken[id.index()][u];
      }
    }
    throw InternalError("an operand is not among the uses of its storage");
  }

  // The choice of a node, or the strategy by which it shows what it views.
  std::size_t strategy_of(const Node& node) const {
    const PlanVariableId variable = problem_.variable_of(node.id);
    if (variable.valid()) return plan_.choices[variable.index()];
    const ChoiceSet& set = *problem_.choices_of(node.id);
    const std::optional<std::size_t>& copy =
        views_.copy_behind(node.outputs[0]);
    for (std::size_t c = 0; c < set.size(); ++c) {
      if (set.layout(c, 0) == views_.layout(node.inputs[0], copy) &&
          set.layout(c, 1) == views_.layout(node.outputs[0], copy)) {
        return c;
      }
    }
    throw InternalError("a view is laid out as it cannot be");
  }

  PlannedNode planned(const Node& node) {
    PlannedNode out;
    out.name = node.name;
    out.op = node.op_name();
    out.module_path = node.module_path;
    if (!node.source.empty()) out.source = to_string(node.source);
    out.phase = node.phase;
    const ChoiceSet* set = problem_.choices_of(node.id);
    if (set == nullptr) {
      for (const ValueId input : node.inputs) {
        out.inputs.push_back(taken(input, views_.copy_behind(input)));
      }
      return out;
    }
    const PlacementStrategy& strategy = set->op.strategies[strategy_of(node)];
    const LocalContext context{*set->op.op, *set->op.map, problem_.mesh(),
                               problem_.layouts(), strategy};
    out.compute_nanoseconds = compute_nanoseconds(context, problem_.topology());
    out.inside = collectives_inside(context, problem_.topology());
    const PlanVariableId variable = problem_.variable_of(node.id);
    for (std::size_t u = 0; u < node.inputs.size(); ++u) {
      out.inputs.push_back(
          taken(node.inputs[u], variable.valid()
                                    ? taken_by(variable, u)
                                    : views_.copy_behind(node.outputs[0])));
    }
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      out.outputs.push_back({name(node.outputs[o]),
                             tensor(node.outputs[o], strategy.outputs[o])});
    }
    return out;
  }

  void add_outputs(Plan& plan) {
    // As the tie takes it, or the output's own variable.
    std::map<std::pair<ValueId, ValueId>, std::optional<std::size_t>> tied;
    std::map<std::size_t, std::optional<std::size_t>> own;
    for (std::size_t v = 0; v < plan_.choices.size(); ++v) {
      const PlanVariable& variable = problem_.variables()[v];
      if (variable.kind == PlanVariable::Kind::kOperator) continue;
      for (std::size_t u = 0; u < variable.uses.size(); ++u) {
        const auto copy = taken_by(PlanVariableId(v), u);
        if (variable.kind == PlanVariable::Kind::kOutput) {
          own[variable.index] = copy;
        } else {
          tied[{variable.makes[0], variable.uses[u]}] = copy;
        }
      }
    }
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      const GraphOutput& output = graph_.outputs()[i];
      const auto found = own.find(i);
      const auto tie = tied.find({output.target, output.value});
      const std::optional<std::size_t> copy =
          found != own.end()  ? found->second
          : tie != tied.end() ? tie->second
                              : views_.copy_behind(output.value);
      plan.outputs.push_back(
          {std::string(kind_of(output.kind)),
           output.target.valid() ? name(output.target) : std::string(),
           taken(output.value, copy)});
    }
  }

  // The optimizer's step, and the gathers behind it.
  void add_updates(Plan& plan) {
    const auto end = static_cast<std::int64_t>(graph_.nodes().size());
    for (std::size_t v = 0; v < problem_.variables().size(); ++v) {
      const PlanVariable& variable = problem_.variables()[v];
      if (variable.choices->state_layouts.empty()) continue;
      const std::uint32_t choice = plan_.choices[v];
      const ValueId value = variable.makes[0];
      const LayoutId state = variable.choices->state_layouts[choice];
      const LayoutId own =
          variable.choices->layout(choice, variable.uses.size());
      std::int64_t cost = variable.choices->costs[choice];
      if (state != own) {
        PlannedCopy copy = moved(value, state, own);
        cost -= problem_.move_nanoseconds(value, state, own);
        copy.made_at = copy.freed_at = end;
        copy.reason = "the optimizer updates it as " + to_string(text(state)) +
                      ", the program takes it as " + to_string(text(own));
        made_.push_back(std::move(copy));
      }
      plan.optimizer_nanoseconds += cost;
    }
  }

  const PlanProblem& problem_;
  const Graph& graph_;
  const PlanAssignment& plan_;
  StorageViews views_;
  std::vector<CopyUsers> users_;
  AlternativeCosts alternatives_;
  std::vector<PlannedCopy> made_;
  std::map<std::pair<ValueId, std::size_t>, std::size_t> ids_;
};

void add_options(const PlanOptions& options, Plan& plan) {
  plan.options = {
      {"memory",
       options.memory_limit ? std::to_string(*options.memory_limit) : "none"},
      {"optimizer", std::string(to_string(options.optimizer))},
      {"overlap", fmt::format("{:g}", options.overlap)},
  };
  for (const Pin& pin : options.pins) {
    plan.options.emplace_back("pin", to_string(pin));
  }
}

std::vector<UnsupportedOp> unsupported_ops(const PlanProblem& problem) {
  std::map<std::string, UnsupportedOp> by_op;
  for (const Node& node : problem.graph().nodes()) {
    const ChoiceSet* set = problem.choices_of(node.id);
    if (set == nullptr || set->unsupported.empty()) continue;
    auto& entry = by_op[node.op_name()];
    entry.op = node.op_name();
    entry.reason = set->unsupported;
    ++entry.count;
  }
  std::vector<UnsupportedOp> out;
  out.reserve(by_op.size());
  for (auto& [name, entry] : by_op) out.push_back(std::move(entry));
  return out;
}

// The graph's own, and the sizes that were counted with.
std::vector<PlannedGuard> guards_of(const Graph& graph) {
  std::vector<PlannedGuard> guards;
  for (const Guard& guard : graph.guards()) {
    guards.push_back({guard.condition, guard.origin});
  }
  for (const Symbol& symbol : graph.symbols()) {
    if (!symbol.hint) continue;
    guards.push_back({symbol.name + " == " + std::to_string(*symbol.hint),
                      "the size that the plan was made for"});
  }
  return guards;
}

}  // namespace

Plan assemble_plan(const PlanProblem& problem, const PlanSolution& solution) {
  Plan plan;
  plan.graph_name = problem.graph().name();
  plan.graph_hash = hash_text(problem.graph().hash());
  plan.graph_ops = problem.graph().nodes().size();
  plan.mesh = problem.mesh();
  plan.topology = problem.topology().name;
  add_options(problem.options(), plan);
  plan.unsupported = unsupported_ops(problem);
  plan.guards = guards_of(problem.graph());
  plan.status = solution.status;
  plan.lower_bound_nanoseconds = solution.lower_bound;
  const PlanEvaluation& judged = solution.evaluation;
  plan.memory = {judged.peak_bytes, judged.peak_at, judged.parameter_bytes,
                 judged.optimizer_bytes, problem.options().memory_limit};
  for (const PlanSolution::ShortSlot& step : solution.clash) {
    const auto at = static_cast<std::size_t>(step.slot);
    plan.clash.memory.push_back(
        {step.slot,
         at < plan.graph_ops ? problem.graph().nodes()[at].name : std::string(),
         step.bytes_short});
  }
  plan.clash.irreducible = solution.clash_irreducible;
  if (!solution.assignment) return plan;
  Assembler(problem, solution).fill(plan);
  plan.objective_nanoseconds = judged.objective;
  plan.summary = summarize(plan);
  // What ran replicated for want of a strategy was not chosen from a space.
  if (plan.status == PlanStatus::kOptimal && !plan.unsupported.empty()) {
    plan.status = PlanStatus::kFeasible;
  }
  return plan;
}

}  // namespace shardprop

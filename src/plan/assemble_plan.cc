#include <shardprop/plan/make_plan.h>

#include "plan/copies.h"
#include "plan/liveness.h"
#include "plan/reasons.h"

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
  Assembler(const PlanProblem& problem, const PlanChoice& choice)
      : problem_(problem),
        graph_(problem.graph()),
        choices_(choice.choices),
        copies_(needed_copies(problem, choices_)),
        live_(liveness(problem, choices_, copies_)) {
    for (std::size_t c = 0; c < copies_.size(); ++c) {
      copy_of_[{copies_[c].value, copies_[c].dst}] = c;
    }
  }

  void fill(Plan& plan) const {
    add_values(plan);
    add_copies(plan);
    for (const Node& node : graph_.nodes()) plan.nodes.push_back(planned(node));
    add_outputs(plan);
  }

  const Liveness& live() const { return live_; }

 private:
  LayoutId made_layout(ValueId value) const {
    const PlanValue& planned = problem_.value(value);
    return layout_at(problem_, choices_, planned.maker, planned.operand);
  }

  PlannedTensor tensor(ValueId value, LayoutId layout) const {
    const TensorMeta& meta = graph_.value(value).meta;
    return {meta.shape(), meta.dtype(), problem_.layouts()[layout]};
  }

  PlannedInput taken(ValueId value, LayoutId layout) const {
    PlannedInput input{
        graph_.value(value).display_name(), problem_.layouts()[layout], {}};
    if (const auto copy = copy_of_.find({value, layout});
        copy != copy_of_.end()) {
      input.copy = copy->second;
    }
    return input;
  }

  void add_values(Plan& plan) const {
    for (const GraphInput& input : graph_.inputs()) {
      plan.values.push_back({graph_.value(input.value).display_name(),
                             std::string(role_of(input.kind)),
                             tensor(input.value, made_layout(input.value))});
    }
  }

  void add_copies(Plan& plan) const {
    LocalPrices prices(problem_, choices_);
    for (std::size_t c = 0; c < copies_.size(); ++c) {
      const NeededCopy& needed = copies_[c];
      PlannedCopy copy;
      copy.from = graph_.value(needed.value).display_name();
      copy.src = problem_.layouts()[needed.src];
      copy.dst = problem_.layouts()[needed.dst];
      copy.made_at = needed.made_at;
      copy.freed_at = live_.copy_ends[c];
      CopyReason reason = reason_of(problem_, choices_, needed, prices);
      copy.reason = std::move(reason.text);
      copy.alternative_nanoseconds = reason.alternative_nanoseconds;
      const RedistributePlan moves =
          problem_.redistribution(needed.value, needed.src, needed.dst);
      for (const RedistributeStep& step : moves.steps) {
        copy.steps.push_back({step.collective, step.mesh_dims,
                              step.bytes_per_rank, step.nanoseconds});
      }
      copy.hidden_nanoseconds =
          problem_.hidden_nanoseconds(needed.value, moves.nanoseconds);
      plan.copies.push_back(std::move(copy));
    }
  }

  PlannedNode planned(const Node& node) const {
    PlannedNode out;
    out.name = node.name;
    out.op = node.op_name();
    out.module_path = node.module_path;
    if (!node.source.empty()) out.source = to_string(node.source);
    out.phase = node.phase;
    const PlanVariableId id = problem_.variable_of(node.id);
    if (!id.valid()) {
      for (const ValueId input : node.inputs) {
        out.inputs.push_back(taken(input, made_layout(input)));
      }
      return out;
    }
    const ChoiceSet& set = *problem_.variable(id).choices;
    const PlacementStrategy& strategy = set.op.strategies[choices_[id.index()]];
    const LocalContext context{*set.op.op, *set.op.map, problem_.mesh(),
                               problem_.layouts(), strategy};
    out.compute_nanoseconds = compute_nanoseconds(context, problem_.topology());
    for (const InsideStep& step :
         collectives_inside(context, problem_.topology())) {
      out.inside.push_back({step.collective, step.mesh_dims,
                            step.bytes_per_rank, step.nanoseconds});
    }
    for (std::size_t u = 0; u < node.inputs.size(); ++u) {
      out.inputs.push_back(taken(node.inputs[u], strategy.inputs[u]));
    }
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      out.outputs.push_back({graph_.value(node.outputs[o]).display_name(),
                             tensor(node.outputs[o], strategy.outputs[o])});
    }
    return out;
  }

  void add_outputs(Plan& plan) const {
    // In the layout of the tie, or of the output's own variable.
    std::map<std::pair<ValueId, ValueId>, LayoutId> tied;
    std::map<std::size_t, LayoutId> own;
    for (std::size_t v = 0; v < choices_.size(); ++v) {
      const PlanVariable& variable = problem_.variables()[v];
      if (variable.kind == PlanVariable::Kind::kOperator) continue;
      for (std::size_t u = 0; u < variable.uses.size(); ++u) {
        const LayoutId layout = variable.choices->layout(choices_[v], u);
        if (variable.kind == PlanVariable::Kind::kOutput) {
          own[variable.index] = layout;
        } else {
          tied[{variable.makes[0], variable.uses[u]}] = layout;
        }
      }
    }
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      const GraphOutput& output = graph_.outputs()[i];
      const auto found = own.find(i);
      const auto tie = tied.find({output.target, output.value});
      const LayoutId layout = found != own.end()  ? found->second
                              : tie != tied.end() ? tie->second
                                                  : made_layout(output.value);
      plan.outputs.push_back({std::string(kind_of(output.kind)),
                              output.target.valid()
                                  ? graph_.value(output.target).display_name()
                                  : std::string(),
                              taken(output.value, layout)});
    }
  }

  const PlanProblem& problem_;
  const Graph& graph_;
  const std::vector<std::uint32_t>& choices_;
  std::vector<NeededCopy> copies_;
  Liveness live_;
  std::map<std::pair<ValueId, LayoutId>, std::size_t> copy_of_;
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
  for (const PlanVariable& variable : problem.variables()) {
    if (variable.choices->unsupported.empty()) continue;
    const std::string& op = variable.choices->op.op->name();
    auto& entry = by_op[op];
    entry.op = op;
    entry.reason = variable.choices->unsupported;
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

Plan assemble_plan(const PlanProblem& problem, const PlanChoice& choice) {
  Plan plan;
  plan.graph_name = problem.graph().name();
  plan.graph_hash = hash_text(problem.graph().hash());
  plan.graph_ops = problem.graph().nodes().size();
  plan.mesh = problem.mesh();
  plan.topology = problem.topology().name;
  add_options(problem.options(), plan);
  plan.unsupported = unsupported_ops(problem);
  plan.guards = guards_of(problem.graph());
  plan.lower_bound_nanoseconds = choice.lower_bound;

  if (choice.objective >= kUnreachable) return plan;
  const Assembler assembler(problem, choice);
  const Liveness& live = assembler.live();
  plan.memory = {live.peak_bytes, live.peak_at, live.parameter_bytes,
                 live.optimizer_bytes, problem.options().memory_limit};
  if (!choice.feasible) return plan;
  assembler.fill(plan);
  for (std::size_t v = 0; v < problem.variables().size(); ++v) {
    const PlanVariable& variable = problem.variables()[v];
    if (variable.kind != PlanVariable::Kind::kInput) continue;
    plan.optimizer_nanoseconds += variable.choices->costs[choice.choices[v]];
  }
  plan.objective_nanoseconds = choice.objective;
  plan.summary = summarize(plan);
  plan.status =
      choice.objective == choice.lower_bound && plan.unsupported.empty()
          ? PlanStatus::kOptimal
          : PlanStatus::kFeasible;
  return plan;
}

}  // namespace shardprop

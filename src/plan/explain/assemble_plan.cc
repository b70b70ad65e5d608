#include "plan/explain/assemble_plan.h"

#include "base/index.h"
#include "plan/evaluate/buffer_views.h"
#include "plan/evaluate/memory_breakdown.h"
#include "plan/explain/copy_list.h"
#include "plan/explain/count_kernels.h"
#include "plan/explain/planned_windows.h"
#include "plan/explain/record_question.h"
#include "plan/explain/roles_and_work.h"
#include "plan/problem/problem_data.h"
#include "plan/transfer_time.h"

#include <shardprop/base/error.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace shardprop {
namespace {

std::int64_t count_updates(const PlanProblem& problem) {
  return std::count_if(problem.variables().begin(), problem.variables().end(),
                       [](const PlanVariable& variable) {
                         return !variable.choices->state_layouts.empty();
                       });
}

class Assembler {
 public:
  Assembler(const PlanProblem& problem, const PlanSolution& solution)
      : problem_(problem),
        graph_(problem.graph()),
        plan_(*solution.assignment),
        end_(static_cast<std::int64_t>(graph_.nodes().size()) +
             count_updates(problem)),
        views_(problem, plan_),
        copies_(problem, plan_, views_, end_, solution.lower_bound),
        loads_(solution.evaluation.windows) {}

  void fill(Plan& plan) {
    add_values(plan);
    for (const Node& node : graph_.nodes()) plan.nodes.push_back(planned(node));
    add_outputs(plan);
    add_updates(plan);
    add_loads(problem_, loads_, copies_.number(plan), plan);
    plan.kernels = count_kernels(problem_, plan_);
  }

 private:
  const Layout& text(LayoutId id) const { return problem_.layouts()[id]; }
  const std::string& name(ValueId value) const {
    return graph_.value(value).display_name();
  }

  PlannedTensor tensor(ValueId value, LayoutId layout) const {
    const TensorMeta& meta = graph_.value(value).meta;
    return {meta.shape(), meta.dtype(), text(layout)};
  }

  void add_values(Plan& plan) const {
    for (std::size_t v = 0; v < problem_.variables().size(); ++v) {
      const PlanVariable& variable = problem_.variables()[v];
      if (variable.kind != PlanVariable::Kind::kInput) continue;
      const GraphInput& input = graph_.inputs()[variable.index];
      PlannedValue value{name(input.value),
                         input.kind,
                         tensor(input.value, views_.layout(input.value, {})),
                         {},
                         problem_.is_reduced_late(variable, plan_.choices[v])};
      if (const auto& states = variable.choices->state_layouts;
          !states.empty()) {
        const Layout& state = text(states[plan_.choices[v]]);
        if (!(state == value.tensor.layout)) value.state_layout = state;
      }
      plan.values.push_back(std::move(value));
    }
  }

  // Returns the copy that use `use` of a variable reads.
  std::optional<std::size_t> read_by(PlanVariableId variable,
                                     std::size_t use) const {
    const ValueId value = problem_.variable(variable).uses[use];
    const PlanBufferId id = problem_.value(value).buffer;
    return plan_.read[id.index()][problem_.variable(variable).use_places[use]];
  }

  // Returns the choice of a node, or the strategy of a view without a variable.
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

  // Nodes of repeated layers share one LocalRun.
  const LocalRun& local_of(const ChoiceSet& set, std::size_t strategy,
                           const LocalContext& context) {
    const auto [it, fresh] = local_.try_emplace({&set, strategy});
    if (fresh) it->second = local_run(context);
    return it->second;
  }

  static CopyList::Reader operand_of(const Node& node, std::size_t operand) {
    return {{CopyUser::Kind::kNode, node.name}, operand};
  }

  CopyList::Reader reader_of(const GraphOutput& output) const {
    if (!output.target.valid()) {
      return {{CopyUser::Kind::kResult, name(output.value)}, {}};
    }
    const bool is_gradient = output.kind == OutputKind::kGradient;
    return {{is_gradient ? CopyUser::Kind::kGradient : CopyUser::Kind::kUpdate,
             name(output.target)},
            {}};
  }

  PlannedNode planned(const Node& node) {
    PlannedNode out;
    out.name = node.name;
    out.op = node.op_name();
    out.module_path = node.module_path;
    if (!node.source.empty()) out.source = to_string(node.source);
    out.phase = node.phase;
    if (node.runs_again()) {
      out.second_run_of = problem_.graph().node(node.second_run_of).name;
    }
    out.is_random = node.op.function->is_random();
    const ChoiceSet* set = problem_.choices_of(node.id);
    if (set == nullptr) {
      for (std::size_t u = 0; u < node.inputs.size(); ++u) {
        out.inputs.push_back(copies_.read(node.inputs[u],
                                          views_.copy_behind(node.inputs[u]),
                                          operand_of(node, u)));
      }
      return out;
    }
    const std::size_t chosen = strategy_of(node);
    const PlacementStrategy& strategy = set->op.strategies[chosen];
    const LocalContext context{*set->op.op, *set->op.space, problem_.mesh(),
                               problem_.layouts(), strategy};
    out.kind = kind_of(node, *set->op.space);
    out.compute_nanoseconds = set->compute[chosen];
    out.assignment = strategy.assignment;
    if (strategy.shardings.valid()) {
      out.shardings = FactorShardings(problem_.layouts()[strategy.shardings]);
    }
    out.local = local_of(*set, chosen, context);
    out.inside = collectives_inside(context, problem_.topology());
    const PlanVariableId variable = problem_.variable_of(node.id);
    for (std::size_t u = 0; u < node.inputs.size(); ++u) {
      out.inputs.push_back(
          copies_.read(node.inputs[u],
                       variable.valid() ? read_by(variable, u)
                                        : views_.copy_behind(node.outputs[0]),
                       operand_of(node, u)));
    }
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      out.outputs.push_back({name(node.outputs[o]),
                             tensor(node.outputs[o], strategy.outputs[o])});
    }
    return out;
  }

  void add_outputs(Plan& plan) {
    // The copy that each output reads: by target and value if the output is
    // bound to an input, else by index of the output.
    std::map<std::pair<ValueId, ValueId>, std::optional<std::size_t>> tied;
    std::map<std::size_t, std::optional<std::size_t>> own;
    for (std::size_t v = 0; v < plan_.choices.size(); ++v) {
      const PlanVariable& variable = problem_.variables()[v];
      if (variable.kind == PlanVariable::Kind::kOperator) continue;
      for (std::size_t u = 0; u < variable.uses.size(); ++u) {
        const auto copy = read_by(PlanVariableId(v), u);
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
          {output.kind,
           output.target.valid() ? name(output.target) : std::string(),
           copies_.read(output.value, copy, reader_of(output))});
    }
  }

  // Adds the optimizer's step. If the optimizer's state is sharded finer than
  // the parameter, the step slices the parameter first and gathers it
  // afterwards.
  void add_updates(Plan& plan) {
    std::map<std::string, PlannedInput> gradients;
    for (const PlannedOutput& output : plan.outputs) {
      if (output.kind != OutputKind::kGradient) continue;
      gradients.emplace(output.target, output.value);
    }
    auto at = static_cast<std::int64_t>(graph_.nodes().size());
    for (std::size_t v = 0; v < problem_.variables().size(); ++v) {
      const PlanVariable& variable = problem_.variables()[v];
      if (variable.choices->state_layouts.empty()) continue;
      const std::uint32_t choice = plan_.choices[v];
      const ValueId value = variable.makes[0];
      const LayoutId state = variable.choices->state_layouts[choice];
      const LayoutId own =
          variable.choices->layout(choice, variable.uses.size());
      PlannedUpdate update;
      const std::string optimizer(to_string(*problem_.options().optimizer));
      update.op = "optimizer." + optimizer;
      update.parameter = name(value);
      update.module_path = module_of(value);
      if (const auto found = gradients.find(update.parameter);
          found != gradients.end()) {
        update.gradient = found->second;
      }
      update.compute_nanoseconds = variable.choices->costs[choice];
      update.value = {update.parameter, text(own), {}};
      update.result = {optimizer + "." + update.parameter,
                       tensor(value, state)};
      PlannedInput after{update.result.name, text(state), {}};
      if (state != own) {
        const TransferTime gather{
            problem_.move_nanoseconds(value, state, own),
            problem_.overlappable_nanoseconds(value, state, own)};
        update.compute_nanoseconds -=
            share_of_step(problem_.options(), gather).waited;
        update.value = {update.parameter, text(state),
                        add_slice(value, own, state, at)};
        after.layout = text(own);
        after.copy = add_gather(variable, state, own, at + 1, after.from);
      }
      plan.optimizer_nanoseconds += update.compute_nanoseconds;
      plan.updates.push_back(std::move(update));
      plan.outputs.push_back({OutputKind::kUpdate, name(value), after});
      ++at;
    }
  }

  std::size_t add_slice(ValueId value, LayoutId own, LayoutId state,
                        std::int64_t at) {
    PlannedCopy slice = copies_.moved(value, own, state);
    if (slice.nanoseconds() > 0) {
      throw InternalError(
          "a finer sharding is more than a slice away: " + name(value) + " " +
          to_string(text(own)) + " to " + to_string(text(state)));
    }
    slice.of = slice.from;
    slice.produced_at = slice.freed_at = at;
    slice.reason.cause = CopyCause::kOptimizer;
    slice.reason.user = {CopyUser::Kind::kOptimizer, name(value)};
    slice.reason.wanted = text(state);
    return copies_.add(std::move(slice));
  }

  std::size_t add_gather(const PlanVariable& parameter, LayoutId state,
                         LayoutId own, std::int64_t at, const std::string& of) {
    const ValueId value = parameter.makes[0];
    PlannedCopy gather = copies_.moved(value, state, own);
    copies_.share(gather);
    gather.from = gather.of = of;
    gather.produced_at = at;
    gather.freed_at = end_;
    gather.reason.cause = CopyCause::kOptimizer;
    gather.reason.user = {CopyUser::Kind::kNextStep, name(value)};
    gather.reason.wanted = text(own);
    return copies_.add(std::move(gather),
                       problem_.window_after_update(parameter));
  }

  // Returns the module path of the first node that reads the value and has one.
  std::string module_of(ValueId value) const {
    for (const Use& use : graph_.value(value).consumers) {
      const std::string& path = graph_.node(use.node).module_path;
      if (!path.empty()) return path;
    }
    return {};
  }

  const PlanProblem& problem_;
  const Graph& graph_;
  const PlanAssignment& plan_;
  std::int64_t end_;
  BufferViews views_;
  CopyList copies_;
  std::vector<WindowLoad> loads_;
  std::map<std::pair<const ChoiceSet*, std::size_t>, LocalRun> local_;
};

}  // namespace

Plan assemble_plan(const PlanProblem& problem, const PlanSolution& solution) {
  Plan plan;
  record_question(problem, plan);
  plan.status = solution.status;
  plan.lower_bound_nanoseconds = solution.lower_bound;
  plan.overlap_multipliers = solution.overlap_multipliers;
  plan.warm_start.data = solution.warm_start;
  const PlanEvaluation& judged = solution.evaluation;
  if (solution.assignment) {
    plan.memory = memory_at(problem, *solution.assignment, judged.peak_at);
  } else {
    plan.memory.parameter_bytes = judged.parameter_bytes;
    plan.memory.optimizer_bytes = judged.optimizer_bytes;
  }
  plan.memory.peak_bytes = judged.peak_bytes;
  plan.memory.peak_at = judged.peak_at;
  plan.memory.unfused_peak_bytes = judged.peak_bytes;
  if (solution.assignment) {
    const std::vector<std::int64_t> bytes =
        bytes_by_slot(problem, *solution.assignment, KernelMemory::kUnfused);
    plan.memory.unfused_peak_bytes =
        *std::max_element(bytes.begin(), bytes.end());
  }
  plan.memory.limit_bytes = problem.options().memory_limit;
  for (const PlanSolution::ShortSlot& step : solution.conflict) {
    const auto at = index(step.slot);
    plan.conflict.memory.push_back(
        {step.slot,
         at < plan.graph_ops ? problem.graph().nodes()[at].name : std::string(),
         step.bytes_short});
  }
  plan.conflict.irreducible = solution.conflict_irreducible;
  if (solution.status == PlanStatus::kInfeasible) {
    plan.conflict.recipe = applied_recipe(problem);
  }
  if (!solution.assignment) return plan;
  Assembler(problem, solution).fill(plan);
  if (plan.memory.peak_at == static_cast<std::int64_t>(plan.nodes.size())) {
    plan.memory.peak_at += static_cast<std::int64_t>(plan.updates.size());
  }
  plan.made_in = problem.data().set_up.space;
  plan.objective_nanoseconds = judged.objective;
  plan.summary = summarize(plan);
  describe(problem, solution, plan);
  // An operator that runs replicated because it has no strategy was not chosen
  // from a space. So the plan is not proven optimal.
  if (plan.status == PlanStatus::kOptimal && !plan.unsupported.empty()) {
    plan.status = PlanStatus::kFeasible;
  }
  return plan;
}

}  // namespace shardprop

#include "plan/explain/count_kernels.h"

#include "base/saturating.h"
#include "base/union_find.h"
#include "plan/problem/problem_data.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

namespace shardprop {
namespace {

class KernelCount {
 public:
  KernelCount(const PlanProblem& problem, const PlanAssignment& plan)
      : problem_(problem),
        groups_(*problem.data().fusion),
        graph_(problem.graph()),
        plan_(plan),
        kernels_(graph_.nodes().size()) {}

  PlannedKernels run() {
    for (const Node& node : graph_.nodes()) join(node);
    double bytes = 0;
    std::set<std::size_t> kernels;
    for (const Node& node : graph_.nodes()) {
      if (!computes(node)) continue;
      kernels.insert(kernels_.root(node.id.index()));
      bytes += read_by(node) + written_by(node);
      const PlanVariableId variable = problem_.variable_of(node.id);
      out_.priced_nanoseconds =
          sat_add(out_.priced_nanoseconds,
                  problem_.variable(variable)
                      .choices->compute[plan_.choices[variable.index()]]);
    }
    for (const AssignedCopy& copy : plan_.copies) add_cut(copy);
    out_.groups = static_cast<std::int64_t>(groups_.size());
    out_.kernels = static_cast<std::int64_t>(kernels.size());
    out_.bytes = saturated(bytes);
    out_.nanoseconds =
        sat_add(sat_mul(out_.kernels, launch_nanoseconds(problem_.topology())),
                traffic_nanoseconds(problem_.topology(), bytes));
    return out_;
  }

 private:
  const PlacementStrategy& strategy(const Node& node) const {
    const PlanVariableId variable = problem_.variable_of(node.id);
    const ChoiceSet& set = *problem_.variable(variable).choices;
    return set.op.strategies[plan_.choices[variable.index()]];
  }

  LocalContext context(const Node& node) const {
    const ChoiceSet& set =
        *problem_.variable(problem_.variable_of(node.id)).choices;
    return {*set.op.op, *set.op.space, problem_.mesh(), problem_.layouts(),
            strategy(node)};
  }

  // Returns whether the node is an operator of a fusion group and part of a
  // kernel. A view is not, and neither is an operator whose strategy needs a
  // program.
  bool computes(const Node& node) const {
    if (groups_.group(node.id) == FusionGroups::kAlone) return false;
    const ChoiceSet* set = problem_.choices_of(node.id);
    return set != nullptr && !set->op.space->is_free &&
           problem_.variable_of(node.id).valid() &&
           !needs_program(context(node));
  }

  // Returns the copy that a node reads; empty if it reads the value as it was
  // produced.
  std::optional<std::size_t> copy_of(const Node& node, std::size_t use) const {
    const PlanVariableId variable = problem_.variable_of(node.id);
    if (!variable.valid()) return std::nullopt;  // its user reads the copy
    const PlanBufferId buffer = problem_.value(node.inputs[use]).buffer;
    return plan_
        .read[buffer.index()][problem_.variable(variable).use_places[use]];
  }

  // Joins the node with producers of its inputs in the same group, if it reads
  // the inputs as they were produced.
  void join(const Node& node) {
    const std::int32_t group = groups_.group(node.id);
    if (group == FusionGroups::kAlone) return;
    for (std::size_t u = 0; u < node.inputs.size(); ++u) {
      const Value& value = graph_.value(node.inputs[u]);
      if (value.is_input() || groups_.group(value.producer) != group ||
          copy_of(node, u)) {
        continue;
      }
      const Node& producer = graph_.node(value.producer);
      const bool both = (computes(node) || is_view(node)) &&
                        (computes(producer) || is_view(producer));
      if (both) kernels_.join(node.id.index(), producer.id.index());
    }
  }

  bool is_view(const Node& node) const {
    const ChoiceSet* set = problem_.choices_of(node.id);
    return set != nullptr && set->op.space->is_free;
  }

  // Returns the node that produced the memory of a value.
  std::optional<std::size_t> producer_of(const Value& value) const {
    const Value& base = graph_.value(graph_.buffer(value.buffer).base());
    if (base.is_input()) return std::nullopt;
    return base.producer.index();
  }

  double read_by(const Node& node) {
    const LocalContext at = context(node);
    const KernelPart part = groups_.part(node);
    double bytes = 0;
    for (std::size_t u = 0; u < node.inputs.size(); ++u) {
      const Value& value = graph_.value(node.inputs[u]);
      const auto copy = copy_of(node, u);
      const auto producer = producer_of(value);
      const std::size_t kernel = kernels_.root(node.id.index());
      if (!copy && producer && kernels_.root(*producer) == kernel) continue;
      const Value& base = graph_.value(graph_.buffer(value.buffer).base());
      const bool is_whole = value.meta.numel() == base.meta.numel();
      if (!read_
               .emplace(kernel, is_whole ? base.id : value.id,
                        copy.value_or(~std::size_t{0}))
               .second) {
        continue;
      }
      const double share =
          value.meta.numel() == 0
              ? 0
              : std::min(1.0, static_cast<double>(base.meta.numel()) /
                                  static_cast<double>(value.meta.numel()));
      bytes += share * static_cast<double>(
                           at.max_local_input_elements(static_cast<int>(u)) *
                           item_size(value.meta.dtype()));
    }
    return bytes;
  }

  double written_by(const Node& node) {
    const LocalContext at = context(node);
    double bytes = 0;
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      if (!leaves(node, graph_.value(node.outputs[o]))) continue;
      bytes += static_cast<double>(
          at.max_local_output_elements(static_cast<int>(o)) *
          item_size(at.op.outputs[o].dtype()));
    }
    return bytes;
  }

  // Returns whether the value is written to memory: another kernel reads it, or
  // a copy is made from it.
  bool leaves(const Node& node, const Value& produced) {
    if (!groups_.stays_inside(produced.id)) return true;
    for (const ValueId viewed : graph_.buffer(produced.buffer).values) {
      for (const Use& use : graph_.value(viewed).consumers) {
        const Node& user = graph_.node(use.node);
        if (is_view(user)) continue;
        if (!kernels_.are_joined(user.id.index(), node.id.index())) return true;
      }
    }
    return false;
  }

  void add_cut(const AssignedCopy& copy) {
    const PlanBuffer& buffer = problem_.buffer(copy.buffer);
    if (!buffer.inside_kernel) return;
    const std::vector<LayoutId>& layouts = buffer.kind->layouts[copy.value];
    const BufferLayout from =
        copy.source
            ? plan_.copies[*copy.source].state
            : buffer.kind
                  ->produced[problem_.variable(buffer.producer)
                                 .choices->pick(
                                     plan_.choices[buffer.producer.index()],
                                     buffer.operand)];
    out_.priced_nanoseconds =
        sat_add(out_.priced_nanoseconds,
                problem_.cut_nanoseconds(buffer, buffer.values[copy.value],
                                         layouts[from], layouts[copy.state]));
  }

  const PlanProblem& problem_;
  const FusionGroups& groups_;
  const Graph& graph_;
  const PlanAssignment& plan_;
  UnionFind kernels_;  // of nodes
  // The kernel, value and copy of each read that was counted.
  std::set<std::tuple<std::size_t, ValueId, std::size_t>> read_;
  PlannedKernels out_;
};

}  // namespace

PlannedKernels count_kernels(const PlanProblem& problem,
                             const PlanAssignment& assignment) {
  if (!problem.data().fusion) return {};
  return KernelCount(problem, assignment).run();
}

}  // namespace shardprop

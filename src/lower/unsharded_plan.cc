#include "lower/unsharded_plan.h"

#include <set>
#include <string>
#include <utility>

namespace shardprop {
namespace {

// Returns the update of a parameter, with all tensors replicated.
PlannedUpdate update_of(const Graph& graph, ValueId parameter, ValueId gradient,
                        const std::string& optimizer) {
  const Value& value = graph.value(parameter);
  const Layout whole = Layout::replicated(1);
  PlannedUpdate out;
  out.op = "optimizer." + optimizer;
  out.parameter = value.display_name();
  out.gradient = {graph.value(gradient).display_name(), whole, {}};
  out.value = {value.display_name(), whole, {}};
  out.result = {optimizer + "." + value.display_name(),
                {value.meta.shape(), value.meta.dtype(), whole}};
  return out;
}

}  // namespace

Plan unsharded_plan(const Graph& graph, Optimizer optimizer) {
  const Layout whole = Layout::replicated(1);
  Plan plan;
  plan.graph_name = graph.name();
  plan.graph_hash = hash_text(graph.hash());
  plan.graph_ops = graph.nodes().size();
  plan.status = PlanStatus::kOptimal;
  plan.objective_nanoseconds = 0;
  const auto name = [&](ValueId id) { return graph.value(id).display_name(); };
  const auto tensor = [&](ValueId id) {
    const TensorMeta& meta = graph.value(id).meta;
    return PlannedTensor{meta.shape(), meta.dtype(), whole};
  };
  for (const GraphInput& input : graph.inputs()) {
    plan.values.push_back({name(input.value), {}, tensor(input.value), {}});
  }
  for (const Node& node : graph.nodes()) {
    PlannedNode& planned = plan.nodes.emplace_back();
    planned.name = node.name;
    planned.op = node.op_name();
    planned.assignment = {kUnassigned};
    for (const ValueId id : node.inputs) {
      planned.inputs.push_back({name(id), whole, {}});
    }
    for (const ValueId id : node.outputs) {
      planned.outputs.push_back({name(id), tensor(id)});
    }
  }
  for (const GraphOutput& output : graph.outputs()) {
    plan.outputs.push_back(
        {output.kind,
         output.target.valid() ? name(output.target) : std::string(),
         {name(output.value), whole, {}}});
  }
  if (optimizer == Optimizer::kNone) return plan;
  for (const GraphInput& input : graph.inputs()) {
    const auto gradient = graph.gradient_of(input.value);
    if (input.kind != InputKind::kParameter || !gradient) continue;
    plan.updates.push_back(update_of(graph, input.value, *gradient,
                                     std::string(to_string(optimizer))));
    plan.outputs.push_back({OutputKind::kUpdate,
                            name(input.value),
                            {plan.updates.back().result.name, whole, {}}});
  }
  return plan;
}

}  // namespace shardprop

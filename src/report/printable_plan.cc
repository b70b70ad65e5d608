#include "report/printable_plan.h"

#include "base/printable.h"

namespace shardprop {
namespace {

void escape(std::string& text) { text = printable(text); }

void escape(LocalScalar& scalar) {
  if (auto* text = std::get_if<std::string>(&scalar)) escape(*text);
}

void escape(LocalRun& run) {
  for (LocalRunArgument& argument : run.arguments) escape(argument.name);
  if (!run.program) return;
  for (auto& step : run.program->steps) {
    auto* op = std::get_if<LocalRunOp>(&step);
    if (op == nullptr) continue;
    escape(op->name);
    for (auto& [name, value] : op->args) {
      escape(name);
      if (auto* scalar = std::get_if<LocalScalar>(&value)) escape(*scalar);
      if (auto* list = std::get_if<std::vector<LocalScalar>>(&value)) {
        for (LocalScalar& element : *list) escape(element);
      }
    }
  }
}

}  // namespace

Plan printable(Plan plan) {
  escape(plan.graph_name);
  escape(plan.graph_hash);
  escape(plan.topology.name);
  escape(plan.topology.description);
  for (const TopologyField& field : topology_fields()) {
    escape((plan.topology.*field.figure).source);
  }
  for (MeasuredLine& line : plan.topology.measured) escape(line.source);
  for (auto& [name, value] : plan.options) {
    escape(name);
    escape(value);
  }
  for (std::string& pin : plan.conflict.pins) escape(pin);
  for (PlanConflict::Step& step : plan.conflict.memory) escape(step.node);
  for (UnsupportedOp& op : plan.unsupported) {
    escape(op.op);
    escape(op.reason);
  }
  for (PlanRole& role : plan.roles) {
    escape(role.use);
    escape(role.mesh_dim);
    for (std::string& module : role.modules) escape(module);
  }
  for (std::string& note : plan.notes) escape(note);
  for (PlanRecipe& recipe : plan.recipes) escape(recipe.name);
  for (Procedure& procedure : plan.procedures) escape(procedure.name);
  for (PlanPin& pin : plan.pins) escape(pin.pin);
  for (Guard& guard : plan.guards) {
    escape(guard.condition);
    escape(guard.origin);
  }
  for (PlannedValue& value : plan.values) escape(value.name);
  for (PlannedCopy& copy : plan.copies) {
    escape(copy.from);
    escape(copy.of);
    for (std::string& node : copy.undone) escape(node);
    for (std::string& node : copy.views) escape(node);
    escape(copy.reason);
  }
  for (PlannedNode& node : plan.nodes) {
    escape(node.name);
    escape(node.op);
    escape(node.module_path);
    escape(node.source);
    for (PlannedResult& result : node.outputs) escape(result.name);
    for (PlannedInput& input : node.inputs) escape(input.from);
    escape(node.local);
  }
  for (PlannedUpdate& update : plan.updates) {
    escape(update.op);
    escape(update.parameter);
    escape(update.module_path);
    if (update.gradient) escape(update.gradient->from);
    escape(update.value.from);
    escape(update.result.name);
  }
  for (PlannedOutput& output : plan.outputs) {
    escape(output.target);
    escape(output.value.from);
  }
  return plan;
}

}  // namespace shardprop

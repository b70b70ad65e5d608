#include "report/printable_plan.h"

#include "base/printable.h"

#include <variant>

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

void escape(Pin& pin) {
  for (PinTerm& term : pin.terms) escape(term.glob);
}

void escape(Recipe& recipe) {
  for (RecipePart& part : recipe.parts) {
    for (std::string& dim : part.dims) escape(dim);
  }
}

void escape(CopyReason& reason) {
  if (reason.user) escape(reason.user->name);
  if (reason.pin) escape(*reason.pin);
  if (reason.recipe) escape(*reason.recipe);
  escape(reason.text);
}

struct EscapeNote {
  void operator()(GraphNote& note) const { escape(note.text); }
  void operator()(ReportedNote& note) const { escape(note.text); }
  void operator()(SmallBatchNote& note) const { escape(note.mesh_dim); }
  void operator()(UnevenHeadsNote& note) const { escape(note.mesh_dim); }
  void operator()(BatchNormNote& note) const {
    for (std::string& dim : note.mesh_dims) escape(dim);
  }
  void operator()(ReplicatedOpsNote& note) const {
    for (std::string& op : note.ops) escape(op);
  }
  void operator()(UnlikeLayersNote& /*note*/) const {}
  void operator()(EagerActivationsNote& /*note*/) const {}
  void operator()(PipelineDimNote& note) const { escape(note.mesh_dim); }
  void operator()(LeftOutNote& note) const {
    escape(note.part);
    escape(note.message);
  }
  void operator()(FailedPartNote& note) const { escape(note.message); }
  void operator()(EarlierPlanNote& note) const { escape(note.graph); }
  void operator()(RecomputeRulesNote& note) const {
    for (RecomputeRulesNote::Tried& tried : note.tried) escape(tried.rule);
  }
};

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
  if (plan.conflict.recipe) escape(*plan.conflict.recipe);
  for (Pin& pin : plan.conflict.pins) escape(pin);
  for (PlanConflict::Step& step : plan.conflict.memory) escape(step.node);
  for (UnsupportedOp& op : plan.unsupported) {
    escape(op.op);
    escape(op.reason);
  }
  for (DemandedSharding& one : plan.demanded_shardings.demanded) {
    escape(one.op);
    escape(one.rule);
    escape(one.factor);
  }
  for (PlanRole& role : plan.roles) {
    escape(role.mesh_dim);
    for (RoleModule& module : role.modules) escape(module.name);
  }
  for (PlanNote& note : plan.notes) std::visit(EscapeNote(), note);
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

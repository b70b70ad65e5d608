#include "report/printable_plan.h"

#include "base/printable.h"

namespace shardprop {
namespace {

void escape(std::string& text) { text = printable(text); }

}  // namespace

Plan printable(Plan plan) {
  escape(plan.graph_name);
  escape(plan.graph_hash);
  escape(plan.topology);
  for (auto& [name, value] : plan.options) {
    escape(name);
    escape(value);
  }
  for (std::string& pin : plan.clash.pins) escape(pin);
  for (PlanClash::Step& step : plan.clash.memory) escape(step.node);
  for (UnsupportedOp& op : plan.unsupported) {
    escape(op.op);
    escape(op.reason);
  }
  for (PlannedGuard& guard : plan.guards) {
    escape(guard.condition);
    escape(guard.origin);
  }
  for (PlannedValue& value : plan.values) {
    escape(value.name);
    escape(value.role);
  }
  for (PlannedCopy& copy : plan.copies) {
    escape(copy.from);
    escape(copy.reason);
  }
  for (PlannedNode& node : plan.nodes) {
    escape(node.name);
    escape(node.op);
    escape(node.module_path);
    escape(node.source);
    for (PlannedResult& result : node.outputs) escape(result.name);
    for (PlannedInput& input : node.inputs) escape(input.from);
  }
  for (PlannedOutput& output : plan.outputs) {
    escape(output.kind);
    escape(output.target);
    escape(output.value.from);
  }
  return plan;
}

}  // namespace shardprop

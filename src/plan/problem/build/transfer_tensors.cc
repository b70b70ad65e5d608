#include "plan/problem/build/transfer_tensors.h"

#include "graph/analysis/pass_through.h"
#include "plan/problem/transfer_costs.h"

#include <algorithm>
#include <set>
#include <utility>

namespace shardprop {
namespace {

bool carries_through(const ProblemData& data, const Node& node) {
  const auto& set = data.choices_of_node[node.id.index()];
  return carries_elements(data.graph, node,
                          set ? set->op.space.get() : nullptr);
}

void mark_parameters(ProblemData& data) {
  const Graph& graph = data.graph;
  std::vector<PlanValue>& values = data.values;
  for (const GraphInput& input : graph.inputs()) {
    if (input.kind == InputKind::kParameter) {
      values[input.value.index()].overlappable = true;
    }
  }
  for (const Node& node : graph.nodes()) {
    if (carries_through(data, node) &&
        values[node.inputs[0].index()].overlappable) {
      values[node.outputs[0].index()].overlappable = true;
    }
  }
}

// Returns whether no operator that computes reads the value, or a view or cast
// of it.
bool is_passed_through(const ProblemData& data, ValueId value) {
  const Graph& graph = data.graph;
  std::vector<ValueId> open{value};
  while (!open.empty()) {
    const ValueId at = open.back();
    open.pop_back();
    for (const Use& use : graph.value(at).consumers) {
      const Node& node = graph.node(use.node);
      if (!carries_through(data, node)) return false;
      open.push_back(node.outputs[0]);
    }
  }
  return true;
}

// Marks the gradients whose reduction may overlap compute. A gradient that the
// backward pass reads again is on the critical path, so its collective cannot
// overlap.
void mark_gradients(ProblemData& data) {
  const Graph& graph = data.graph;
  std::vector<PlanValue>& values = data.values;
  for (const GraphOutput& output : graph.outputs()) {
    if (output.kind != OutputKind::kGradient ||
        !is_passed_through(data, output.value)) {
      continue;
    }
    ValueId at = output.value;
    while (true) {
      values[at.index()].overlappable = true;
      const Value& value = graph.value(at);
      if (value.is_input()) break;
      const Node& node = graph.node(value.producer);
      if (!carries_through(data, node) ||
          graph.value(node.inputs[0]).consumers.size() != 1) {
        break;
      }
      at = node.inputs[0];
    }
  }
}

bool has_16_bits(const Value& value) {
  return item_size(value.meta.dtype()) == 2;
}

// Returns the values that are only the gradient of a parameter kept in f32, on
// its way to an output. This holds for all values of their storage.
std::set<ValueId> f32_gradients(const ProblemData& data) {
  std::set<ValueId> found;
  if (!keeps_f32(data.options)) return found;
  const Graph& graph = data.graph;
  for (const GraphOutput& output : graph.outputs()) {
    if (output.kind != OutputKind::kGradient || !output.target.valid() ||
        graph.value(output.target).input_kind != InputKind::kParameter ||
        !has_16_bits(graph.value(output.target))) {
      continue;
    }
    for (ValueId at = output.value;;) {
      const Value& value = graph.value(at);
      const bool on_its_way =
          at == output.value || data.values[at.index()].overlappable;
      if (!on_its_way || !has_16_bits(value)) break;
      found.insert(at);
      if (value.is_input()) break;
      const Node& node = graph.node(value.producer);
      if (!carries_through(data, node)) break;
      at = node.inputs[0];
    }
  }
  std::erase_if(found, [&](ValueId value) {
    const Buffer& buffer = graph.buffer(graph.value(value).buffer);
    return !std::all_of(buffer.values.begin(), buffer.values.end(),
                        [&](ValueId other) { return found.contains(other); });
  });
  return found;
}

}  // namespace

void set_moved_tensors(ProblemData& data) {
  mark_parameters(data);
  mark_gradients(data);
  const std::set<ValueId> wide = f32_gradients(data);
  for (const Value& value : data.graph.values()) {
    PlanValue& planned = data.values[value.id.index()];
    TensorMeta meta = value.meta;
    if (wide.contains(value.id)) {
      if (auto widened = TensorMeta::contiguous(meta.shape(), DType::kF32)) {
        meta = *std::move(widened);
      }
    }
    planned.tensor = data.moves.tensor_class(meta, planned.overlappable);
  }
}

}  // namespace shardprop

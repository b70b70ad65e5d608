#include "graph/analysis/in_place.h"

#include "base/index.h"
#include "graph/analysis/view_source.h"
#include "ops/op_call.h"

namespace shardprop {
namespace {

// Returns whether the results of an operator surely have memory of their own.
// PyTorch's operators of one tensor may return it or a view of it, although no
// declaration says so: dropout outside of training, conj_physical, einsum.
bool makes_memory(const Node& node, const IndexSpace& space) {
  if (space.writes_into != IndexSpace::kNothing) return true;
  return node.op_name().starts_with("aten.") && !space.is_free &&
         node.inputs.size() > 1;
}

}  // namespace

InPlace::InPlace(const Graph& graph,
                 const std::vector<const IndexSpace*>& spaces)
    : graph_(graph),
      owner_(graph.buffers().size()),
      memory_(graph.buffers().size()),
      is_fresh_(graph.nodes().size(), false),
      operands_(graph.nodes().size()) {
  join_views(spaces);
  find_uses();
  find_inputs();
  find_operands(spaces);
}

void InPlace::join_views(const std::vector<const IndexSpace*>& spaces) {
  for (std::size_t b = 0; b < owner_.size(); ++b) owner_[b] = b;
  for (const Node& node : graph_.nodes()) {
    const IndexSpace* space = spaces[node.id.index()];
    if (space == nullptr) continue;
    is_fresh_[node.id.index()] = makes_memory(node, *space);
    if (!runs_as_view(*space)) continue;
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      const auto viewed = viewed_operand(graph_, node, o);
      if (!viewed) continue;
      owner_[graph_.value(node.outputs[o]).buffer.index()] =
          memory_of(node.inputs[*viewed]);
    }
  }
}

void InPlace::find_uses() {
  for (const Node& node : graph_.nodes()) {
    const auto at = static_cast<std::int64_t>(node.id.index());
    for (const ValueId input : node.inputs) {
      Memory& memory = memory_[memory_of(input)];
      if (memory.last_use != at) memory.uses_there = 0;
      memory.last_use = at;
      ++memory.uses_there;
    }
  }
  // An output must keep its value.
  for (const GraphOutput& output : graph_.outputs()) {
    memory_[memory_of(output.value)].is_kept = true;
  }
}

void InPlace::find_inputs() {
  for (const GraphInput& input : graph_.inputs()) {
    Memory& memory = memory_[memory_of(input.value)];
    if (memory.is_input) memory.is_kept = true;
    memory.is_input = true;
    const bool may_be_written =
        input.kind == InputKind::kBuffer || input.kind == InputKind::kUser;
    if (may_be_written && graph_.update_of(input.value)) {
      memory.updated = input.value;
    }
  }
}

void InPlace::find_operands(const std::vector<const IndexSpace*>& spaces) {
  for (const Node& node : graph_.nodes()) {
    const IndexSpace* space = spaces[node.id.index()];
    if (space == nullptr || space->writes_into == IndexSpace::kNothing ||
        node.outputs.empty()) {
      continue;
    }
    const std::size_t input = index(space->writes_into);
    const Value& into = graph_.value(node.inputs[input]);
    const Value& base = graph_.value(graph_.buffer(into.buffer).base());
    const Value& result = graph_.value(node.outputs[0]);
    const Memory& memory = memory_[memory_of(into.id)];
    const bool is_one_piece = is_dense(into.meta) &&
                              into.meta.dtype() == base.meta.dtype() &&
                              into.meta.numel() == base.meta.numel();
    const bool is_like_it = result.meta.shape() == into.meta.shape() &&
                            result.meta.dtype() == into.meta.dtype();
    if (!is_one_piece || !is_like_it || !memory.updated.valid() ||
        !is_last_use(node, memory) ||
        !is_update_only(result.id, memory.updated) ||
        may_be_needed(node, memory_of(into.id))) {
      continue;
    }
    operands_[node.id.index()] = static_cast<std::uint32_t>(input);
    memory_[memory_of(result.id)].updated = memory.updated;
  }
}

bool InPlace::is_last_use(const Node& node, const Memory& memory) const {
  return !memory.is_kept && memory.uses_there == 1 &&
         memory.last_use == static_cast<std::int64_t>(node.id.index());
}

// Returns whether every output that has the memory of `value` is the update of
// this input.
bool InPlace::is_update_only(ValueId value, ValueId input) const {
  for (const GraphOutput& output : graph_.outputs()) {
    const bool is_update =
        output.kind == OutputKind::kUpdate && output.target == input;
    if (!is_update && memory_of(output.value) == memory_of(value)) return false;
  }
  return true;
}

// Returns whether a tensor that may have the memory `written` is read by `node`
// as another operand, by a later node, or as an output.
bool InPlace::may_be_needed(const Node& node, std::size_t written) const {
  std::vector<bool> may_share(memory_.size(), false);
  may_share[written] = true;
  for (const Node& reader : graph_.nodes()) {
    if (reader.id == node.id) return false;
    if (is_fresh_[reader.id.index()]) continue;
    bool reads = false;
    for (const ValueId input : reader.inputs) {
      reads = reads || may_share[memory_of(input)];
    }
    if (!reads) continue;
    for (const ValueId output : reader.outputs) {
      const std::size_t made = memory_of(output);
      if (made == written) continue;
      may_share[made] = true;
      const Memory& memory = memory_[made];
      const bool is_read_later =
          memory.last_use >= static_cast<std::int64_t>(node.id.index());
      if (memory.is_kept || is_read_later) return true;
    }
  }
  return false;
}

std::size_t InPlace::memory_of(ValueId value) const {
  return owner_[graph_.value(value).buffer.index()];
}

bool InPlace::may(const Node& node, std::size_t input) const {
  if (const auto found = operand(node)) return *found == input;
  const Memory& memory = memory_[memory_of(node.inputs[input])];
  return !memory.is_input && !memory.updated.valid() &&
         is_last_use(node, memory);
}

}  // namespace shardprop

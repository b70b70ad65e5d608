#include "report/linear_layers.h"

#include "graph/analysis/dim_trace.h"
#include "graph/analysis/pass_through.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

// The matmul or lookup that reads a weight, through views and casts, and the
// style in which it shards one dim of the weight.
struct WeightUse {
  NodeId node;
  std::size_t operand = 0;
  DimTrace trace;     // the weight's dim as the operand has it
  std::string style;  // "colwise"
  bool is_matmul = false;
};

std::optional<WeightUse> use_of_weight(const Graph& graph,
                                       const OpLibrary& library, ValueId weight,
                                       int dim) {
  DimTrace trace{dim, 1};
  ValueId at = weight;
  while (!graph.value(at).consumers.empty()) {
    const Use& use = graph.value(at).consumers.front();
    const Node& node = graph.node(use.node);
    const auto space = library.index_space(node.op);
    if (!space) return std::nullopt;
    const Operand& operand = space->inputs[use.operand];
    const auto cut = factor_at(*space, operand, trace);
    if (!cut) return std::nullopt;
    WeightUse found{use.node, use.operand, trace, {}, false};
    if (space->product == ProductKind::kPlain) {
      found.style =
          space->outputs[0].holds(cut->factor) ? "colwise" : "rowwise";
      found.is_matmul = true;
      return found;
    }
    if (carries_elements(graph, node, &*space)) {
      const auto next = dim_at(*space, space->outputs[0], *cut);
      if (!next) return std::nullopt;
      trace = *next;
      at = node.outputs[0];
      continue;
    }
    const auto rows = factor_at(*space, operand, DimTrace{0, 1});
    if (!rows || space->factor(rows->factor).kind != FactorKind::kIndexed) {
      return std::nullopt;
    }
    found.style =
        rows->factor == cut->factor ? "embedding_rowwise" : "embedding_colwise";
    return found;
  }
  return std::nullopt;
}

}  // namespace

LinearLayers::LinearLayers(const Plan& plan, std::int32_t mesh_dim,
                           const Graph& graph, const OpLibrary& library)
    : graph_(graph), library_(library), mesh_dim_(mesh_dim) {
  for (const PlannedNode& node : plan.nodes) nodes_.emplace(node.name, &node);
  derive_from_inputs();
  for (const PlannedValue& value : plan.values) {
    if (value.kind == InputKind::kParameter) add(value);
  }
  open_pairs();
}

std::optional<LinearLayers::Style> LinearLayers::style_of(
    const std::string& parameter) const {
  const auto found = layers_.find(parameter);
  if (found == layers_.end() || found->second.style.empty()) {
    return std::nullopt;
  }
  const Layer& layer = found->second;
  if (layer.is_open) return Style{layer.style, layer.dim};
  if (layer.style == "colwise") {
    return Style{"colwise_gather_output", layer.dim};
  }
  if (layer.style == "rowwise") {
    return Style{"rowwise_split_input", layer.dim};
  }
  return Style{layer.style, layer.dim};
}

bool LinearLayers::is_weight(const std::string& parameter) const {
  const auto found = layers_.find(parameter);
  return found != layers_.end() && found->second.is_read_alone &&
         parameter.ends_with(".weight");
}

const Layout* LinearLayers::layout_after(const std::string& parameter) const {
  const auto id = graph_.find_value(parameter);
  if (!id) return nullptr;
  ValueId at = *id;
  while (!graph_.value(at).consumers.empty()) {
    const Node& node = graph_.node(graph_.value(at).consumers.front().node);
    const auto space = library_.index_space(node.op);
    if (!space || node.outputs.empty()) return nullptr;
    at = node.outputs[0];
    if (carries_elements(graph_, node, &*space)) continue;
    const PlannedNode* planned = planned_node(node);
    return planned == nullptr || planned->outputs.empty()
               ? nullptr
               : &planned->outputs[0].tensor.layout;
  }
  return nullptr;
}

const PlannedNode* LinearLayers::planned_node(const Node& node) const {
  const auto found = nodes_.find(node.name);
  return found == nodes_.end() ? nullptr : found->second;
}

void LinearLayers::derive_from_inputs() {
  for (const GraphInput& input : graph_.inputs()) {
    if (input.kind != InputKind::kUser) derived_.insert(input.value);
  }
  for (const Node& node : graph_.nodes()) {
    const bool is_derived =
        std::all_of(node.inputs.begin(), node.inputs.end(),
                    [&](ValueId value) { return derived_.contains(value); });
    if (!is_derived) continue;
    derived_.insert(node.outputs.begin(), node.outputs.end());
  }
}

void LinearLayers::add(const PlannedValue& value) {
  const auto id = graph_.find_value(value.name);
  if (!id || value.tensor.shape.size() != 2) return;
  Layer layer;
  for (int dim = 0; dim < 2; ++dim) {
    const auto use = use_of_weight(graph_, library_, *id, dim);
    if (!use) continue;
    layer.is_read_alone = true;
    if (use->is_matmul) layer.matmul = use->node;
    const PlannedNode* planned = planned_node(graph_.node(use->node));
    if (planned == nullptr || use->operand >= planned->inputs.size() ||
        !use->trace.is_outermost()) {
      continue;
    }
    const Placement read = planned->inputs[use->operand].layout[mesh_dim_];
    if (read.is_shard() && read.dim() == use->trace.dim &&
        read.split_factor() == 1) {
      layer.style = use->style;
      layer.dim = dim;
    }
  }
  if (layer.matmul) layer_at_.emplace(*layer.matmul, value.name);
  layers_.emplace(value.name, std::move(layer));
}

std::set<std::string> LinearLayers::feeders_of(ValueId from,
                                               bool& moves) const {
  std::set<std::string> found;
  std::set<ValueId> seen;
  std::vector<ValueId> open = {from};
  while (!open.empty()) {
    const ValueId at = open.back();
    open.pop_back();
    const Value& value = graph_.value(at);
    if (!seen.insert(at).second || derived_.contains(at) ||
        !value.producer.valid()) {
      continue;
    }
    const auto layer = layer_at_.find(value.producer);
    if (layer != layer_at_.end()) {
      found.insert(layer->second);
      continue;
    }
    const Node& node = graph_.node(value.producer);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      moves = moves || redistributes(node, i);
      open.push_back(node.inputs[i]);
    }
  }
  return found;
}

bool LinearLayers::redistributes(const Node& node, std::size_t operand) const {
  const Value& value = graph_.value(node.inputs[operand]);
  if (derived_.contains(node.inputs[operand]) || !value.producer.valid()) {
    return false;
  }
  const PlannedNode* reader = planned_node(node);
  const PlannedNode* maker = planned_node(graph_.node(value.producer));
  if (reader == nullptr || maker == nullptr ||
      operand >= reader->inputs.size() ||
      value.output_index >= maker->outputs.size()) {
    return false;
  }
  const Placement made =
      maker->outputs[value.output_index].tensor.layout[mesh_dim_];
  return !made.is_replicate() &&
         reader->inputs[operand].layout[mesh_dim_] != made;
}

void LinearLayers::open_pairs() {
  std::map<std::string, std::set<std::string>> readers;
  for (auto& [name, layer] : layers_) {
    if (!layer.matmul) continue;
    const Node& matmul = graph_.node(*layer.matmul);
    for (std::size_t i = 0; i < matmul.inputs.size(); ++i) {
      layer.moves_between = layer.moves_between || redistributes(matmul, i);
      layer.feeders.merge(feeders_of(matmul.inputs[i], layer.moves_between));
    }
    for (const std::string& feeder : layer.feeders) {
      readers[feeder].insert(name);
    }
  }
  std::set<std::string> handed_out;
  for (const GraphOutput& output : graph_.outputs()) {
    if (output.kind != OutputKind::kUser && output.kind != OutputKind::kLoss) {
      continue;
    }
    bool moves = false;
    handed_out.merge(feeders_of(output.value, moves));
  }
  for (auto& [name, layer] : layers_) {
    layer.is_open = layer.style == "rowwise" ? !layer.moves_between
                    : layer.style == "colwise"
                        ? !handed_out.contains(name) && readers.contains(name)
                        : false;
  }
  for (bool is_new = true; is_new;) {
    is_new = false;
    for (auto& [name, layer] : layers_) {
      if (!layer.is_open) continue;
      const std::string_view partner =
          layer.style == "rowwise" ? "colwise" : "rowwise";
      const auto fits = [&](const std::string& other) {
        const Layer& met = layers_.at(other);
        return met.is_open && met.style == partner;
      };
      const std::set<std::string>& met =
          layer.style == "rowwise" ? layer.feeders : readers[name];
      layer.is_open = !met.empty() && std::all_of(met.begin(), met.end(), fits);
      is_new = is_new || !layer.is_open;
    }
  }
}

}  // namespace shardprop

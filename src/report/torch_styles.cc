#include <shardprop/report/torch_styles.h>

#include "base/index.h"
#include "base/name_folding.h"
#include "graph/analysis/pass_through.h"
#include "graph/analysis/dim_trace.h"
#include "report/unsaid.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace shardprop {
namespace {

std::string module_of(const std::string& parameter) {
  const std::size_t dot = parameter.rfind('.');
  return dot == std::string::npos ? std::string() : parameter.substr(0, dot);
}

// model.layers.3.mlp.up_proj -> model.layers.3; empty outside of all layers.
std::string block_of(const std::string& module) {
  std::size_t begin = 0;
  while (begin < module.size()) {
    const std::size_t end = std::min(module.find('.', begin), module.size());
    if (is_number(std::string_view(module).substr(begin, end - begin))) {
      return module.substr(0, end);
    }
    begin = end + 1;
  }
  return {};
}

constexpr std::string_view kReplicate = "replicate";

// Folds layers of one name into one entry if they have one style; else each
// layer has its own.
std::vector<ModuleStyle> fold(const std::vector<ModuleStyle>& modules) {
  std::map<std::string, std::set<std::string>> styles;
  for (const ModuleStyle& one : modules) {
    styles[starred_name(one.module)].insert(one.style);
  }
  std::vector<ModuleStyle> out;
  for (const ModuleStyle& one : modules) {
    const std::string name = starred_name(one.module);
    ModuleStyle said{styles[name].size() == 1 ? name : one.module, one.style};
    if (std::find(out.begin(), out.end(), said) == out.end()) {
      out.push_back(std::move(said));
    }
  }
  return out;
}

std::int32_t mesh_dim_named(const DeviceMesh& mesh,
                            std::initializer_list<std::string_view> names,
                            std::int32_t otherwise) {
  for (const std::string_view name : names) {
    if (const auto found = mesh.find_dim(name)) return *found;
  }
  return otherwise;
}

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
    found.style = rows->factor == cut->factor ? "embedding_rowwise"
                                              : "embedding_colwise";
    return found;
  }
  return std::nullopt;
}

// `LinearLayers` is the set of linear layers of a plan. It has the layouts in
// which their matmuls read their weights. It also has the pairs of layers in
// which one reads the other's output without a linear layer between them.
class LinearLayers {
 public:
  LinearLayers(const Plan& plan, std::int32_t mesh_dim, const Graph& graph,
               const OpLibrary& library)
      : graph_(graph), library_(library), mesh_dim_(mesh_dim) {
    for (const PlannedNode& node : plan.nodes) nodes_.emplace(node.name, &node);
    derive_from_inputs();
    for (const PlannedValue& value : plan.values) {
      if (value.kind == InputKind::kParameter) add(value);
    }
    open_pairs();
  }

  // The style of a parameter, and the dim that its use shards. Empty if no
  // matmul or lookup reads it sharded over the mesh dim.
  struct Style {
    std::string name;
    int dim = 0;
  };
  std::optional<Style> style_of(const std::string& parameter) const {
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

  // Returns whether the parameter is the weight of a module that is one matmul
  // or one lookup.
  bool is_weight(const std::string& parameter) const {
    const auto found = layers_.find(parameter);
    return found != layers_.end() && found->second.is_read_alone &&
           parameter.ends_with(".weight");
  }

  // The layout of the first result that is computed from the parameter, such as
  // the output of a norm. Null if there is none.
  const Layout* layout_after(const std::string& parameter) const {
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

 private:
  struct Layer {
    std::optional<NodeId> matmul;
    bool is_read_alone = false;  // by a matmul or a lookup
    std::string style;  // empty: read whole
    int dim = 0;
    // True if the layer exchanges shards with its neighbours: the layers whose
    // output it reads, or the layers that read its output.
    bool is_open = false;
    bool moves_between = false;      // a path to it redistributes
    std::set<std::string> feeders;   // of parameters
  };

  const PlannedNode* planned_node(const Node& node) const {
    const auto found = nodes_.find(node.name);
    return found == nodes_.end() ? nullptr : found->second;
  }

  // Finds the values that do not depend on a user input.
  void derive_from_inputs() {
    for (const GraphInput& input : graph_.inputs()) {
      if (input.kind != InputKind::kUser) derived_.insert(input.value);
    }
    for (const Node& node : graph_.nodes()) {
      const bool is_derived = std::all_of(
          node.inputs.begin(), node.inputs.end(),
          [&](ValueId value) { return derived_.contains(value); });
      if (!is_derived) continue;
      derived_.insert(node.outputs.begin(), node.outputs.end());
    }
  }

  void add(const PlannedValue& value) {
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

  // Walks back from a value to the matmuls of other layers.
  std::set<std::string> feeders_of(ValueId from, bool& moves) const {
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

  // True if an operand depends on the user's inputs, is produced sharded or
  // partial over the mesh dim, and is read in another layout.
  bool redistributes(const Node& node, std::size_t operand) const {
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

  // A column-wise layer may leave its output sharded for row-wise layers only
  // if all layers that these activations connect are sharded accordingly.
  void open_pairs() {
    std::map<std::string, std::set<std::string>> readers;
    for (auto& [name, layer] : layers_) {
      if (!layer.matmul) continue;
      const Node& matmul = graph_.node(*layer.matmul);
      for (std::size_t i = 0; i < matmul.inputs.size(); ++i) {
        layer.moves_between = layer.moves_between || redistributes(matmul, i);
        layer.feeders.merge(
            feeders_of(matmul.inputs[i], layer.moves_between));
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
      layer.is_open =
          layer.style == "rowwise" ? !layer.moves_between
          : layer.style == "colwise"
              ? !handed_out.contains(name) && readers.contains(name)
              : false;
    }
    for (bool is_new = true; is_new;) {
      is_new = false;
      for (auto& [name, layer] : layers_) {
        if (!layer.is_open) continue;
        const std::string& partner =
            layer.style == "rowwise" ? kColwise : kRowwise;
        const auto fits = [&](const std::string& other) {
          const Layer& met = layers_.at(other);
          return met.is_open && met.style == partner;
        };
        const std::set<std::string>& met =
            layer.style == "rowwise" ? layer.feeders : readers[name];
        layer.is_open =
            !met.empty() && std::all_of(met.begin(), met.end(), fits);
        is_new = is_new || !layer.is_open;
      }
    }
  }

  inline static const std::string kColwise = "colwise";
  inline static const std::string kRowwise = "rowwise";

  const Graph& graph_;
  const OpLibrary& library_;
  std::int32_t mesh_dim_;
  std::map<std::string_view, const PlannedNode*> nodes_;
  std::set<ValueId> derived_;
  std::map<std::string, Layer> layers_;        // by parameter
  std::map<NodeId, std::string> layer_at_;     // by matmul
};

// Writes a plan's parameters, one by one, as styles that know one mesh dim.
class Styling {
 public:
  Styling(const Plan& plan, std::int32_t mesh_dim) : plan_(plan) {
    out_.mesh_dim = mesh_dim;
  }

  TorchStyles tensor_parallel(const Graph& graph, const OpLibrary& library) {
    const LinearLayers layers(plan_, out_.mesh_dim, graph, library);
    std::vector<const PlannedValue*> vectors;
    for (const PlannedValue& value : plan_.values) {
      if (value.kind != InputKind::kParameter) continue;
      if (value.tensor.shape.size() == 1) {
        vectors.push_back(&value);
        continue;
      }
      const auto style = layers.style_of(value.name);
      if (style) {
        say(value, style->name, style->dim);
      } else {
        say(value, std::nullopt);
        if (layers.is_weight(value.name)) replicate(module_of(value.name));
      }
    }
    // A bias is sharded with the outputs of its layer.
    for (const PlannedValue* value : vectors) {
      const std::string style = style_of_module(module_of(value->name));
      if (value->name.ends_with(".bias") && style.starts_with("colwise")) {
        say(*value, style);
        continue;
      }
      say(*value, std::nullopt);
      if (style.empty() || style == kReplicate) note_sequences(*value, layers);
    }
    out_.folded = fold(out_.modules);
    note_names();
    return std::move(out_);
  }

  TorchStyles fully_shard() {
    for (const PlannedValue& value : plan_.values) {
      if (value.kind != InputKind::kParameter) continue;
      const Placement placement = value.tensor.layout[out_.mesh_dim];
      const bool sharded = placement.is_shard() && placement.dim() == 0 &&
                           placement.split_factor() == 1;
      say(value, sharded ? std::optional<std::string>("shard") : std::nullopt);
      ++of_block_[block_of(module_of(value.name))].all;
    }
    fold_blocks();
    return std::move(out_);
  }

 private:
  std::string style_of_module(const std::string& module) const {
    const auto known = std::find_if(
        out_.modules.begin(), out_.modules.end(),
        [&](const ModuleStyle& one) { return one.module == module; });
    return known == out_.modules.end() ? std::string() : known->style;
  }

  // Hugging Face replaces the layer numbers of a model's names by `*` before it
  // looks for them in a tp_plan.
  void note_names() {
    for (const ModuleStyle& one : out_.folded) {
      if (block_of(one.module).empty()) continue;
      out_.notes.push_back(
          "layers of one kind have different styles, so that the tp_plan names "
          "them one by one (" +
          one.module +
          "); Hugging Face refuses numbered names: pin one layout for all of "
          "them (--pin 'used:" +
          starred_name(one.module) +
          ".weight=...'), or use parallelize_module");
      break;
    }
    for (const ModuleStyle& one : out_.modules) {
      const std::string block = block_of(one.module);
      if (block.empty() || block.find('.') != block.rfind('.')) continue;
      out_.notes.push_back(
          "the names begin at the module that was exported (" + one.module +
          "); if it is part of a larger model, its path in that model is "
          "missing in front of them");
      break;
    }
  }

  // Hugging Face applies the model's own rule to a module that a plan omits.
  void replicate(const std::string& module) {
    if (style_of_module(module).empty()) {
      out_.modules.push_back({module, std::string(kReplicate)});
    }
  }

  // A module without a style keeps its activations replicated over the mesh
  // dim.
  void note_sequences(const PlannedValue& value, const LinearLayers& layers) {
    const Layout* layout = layers.layout_after(value.name);
    if (layout == nullptr || !(*layout)[out_.mesh_dim].is_shard()) return;
    add_unsaid(out_.unsaid, value.name, *layout,
               "what its module makes is sharded over " +
                   plan_.mesh.name(out_.mesh_dim) +
                   " (sequence parallel), and replicated with these styles");
  }

  // `dim`: the dim of the value that the style shards.
  void say(const PlannedValue& value, std::optional<std::string> style,
           int dim = 0) {
    const Layout& layout = value.tensor.layout;
    Placements said(static_cast<std::size_t>(layout.mesh_ndim()));
    const std::string module = module_of(value.name);
    const auto known = std::find_if(
        out_.modules.begin(), out_.modules.end(),
        [&](const ModuleStyle& one) { return one.module == module; });
    const bool fresh = known == out_.modules.end();
    if (style && !fresh && known->style != *style) {
      unsaid(value, "its module is " + known->style + " already");
      style.reset();
    } else if (style) {
      if (fresh) out_.modules.push_back({module, *style});
      ++of_block_[block_of(module)].said;
      const Placement shard = Placement::shard(dim);
      said[index(out_.mesh_dim)] = shard;
      if (layout[out_.mesh_dim] != shard &&
          !layout[out_.mesh_dim].is_replicate()) {
        unsaid(value, "it is stored otherwise than it is used");
      }
    } else if (!layout[out_.mesh_dim].is_replicate()) {
      unsaid(value, "it is stored in shards, and no style reads it so");
    }
    for (std::int32_t m = 0; m < layout.mesh_ndim(); ++m) {
      if (m == out_.mesh_dim || layout[m].is_replicate()) continue;
      unsaid(value, "it lies over " + plan_.mesh.name(m) +
                        (style ? " too" : ", of which they do not know"));
      break;
    }
    if (value.state_layout) {
      unsaid(value, "its gradient and optimizer state lie as " +
                        to_string(*value.state_layout));
    }
    const auto where = Layout::create(std::move(said));
    if (!where) return;
    const std::string lies = value.name + "=" + to_string(*where);
    if (style == "shard") {
      // Gathered before use.
      pin("stored:" + lies);
      pin("used:" + value.name + "=" +
          to_string(Layout::replicated(layout.mesh_ndim())));
    } else {
      pin(lies);
    }
  }

  void pin(const std::string& text) {
    if (auto made = Pin::parse(text)) out_.pins.push_back(*std::move(made));
  }

  void unsaid(const PlannedValue& value, std::string why) {
    add_unsaid(out_.unsaid, value.name, value.tensor.layout, std::move(why));
  }

  void fold_blocks() {
    bool all = true;
    for (const auto& [block, counts] : of_block_) {
      all = all && counts.said == counts.all;
    }
    const auto add = [&](const std::string& module) {
      const ModuleStyle said{module, "shard"};
      const bool known = std::find(out_.folded.begin(), out_.folded.end(),
                                   said) != out_.folded.end();
      if (!known) out_.folded.push_back(said);
    };
    for (const ModuleStyle& one : out_.modules) {
      const std::string block = block_of(one.module);
      const Counts& counts = of_block_[block];
      if (!block.empty() && counts.said == counts.all) {
        add(block);
      } else if (!all) {
        add(one.module);
      }
    }
    if (all && !out_.modules.empty()) add("");
  }

  const Plan& plan_;
  TorchStyles out_;
  // Parameters by block, and how many of them are sharded.
  struct Counts {
    std::int64_t all = 0;
    std::int64_t said = 0;
  };
  std::map<std::string, Counts> of_block_;
};

}  // namespace

TorchStyles tensor_parallel_styles(const Plan& plan, const Graph& graph,
                                   const OpLibrary& library) {
  return Styling(plan, mesh_dim_named(plan.mesh, {"tp"}, plan.mesh.ndim() - 1))
      .tensor_parallel(graph, library);
}

TorchStyles fully_shard_styles(const Plan& plan) {
  return Styling(plan, mesh_dim_named(plan.mesh, {"dp", "fsdp"}, 0))
      .fully_shard();
}

}  // namespace shardprop

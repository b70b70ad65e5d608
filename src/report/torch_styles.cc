#include <shardprop/report/torch_styles.h>

#include "base/index.h"
#include "base/name_folding.h"
#include "report/linear_layers.h"
#include "report/unsaid.h"

#include <algorithm>
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

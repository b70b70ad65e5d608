#include <shardprop/report/torch_styles.h>

#include "base/index.h"
#include "base/name_folding.h"
#include "plan/carried.h"
#include "plan/dim_trace.h"
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

// model.layers.3.mlp.up_proj -> model.layers.3; empty outside of any layer.
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

// Layers of one name that are alike as one; those that are not, each.
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

// What cutting a dim of a weight cuts in the product or lookup that takes it,
// seen through views and casts.
std::optional<std::string> style_of_cut(const Graph& graph,
                                        const OpLibrary& library,
                                        ValueId weight, int dim) {
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
    if (space->product == ProductKind::kPlain) {
      return space->outputs[0].holds(cut->factor) ? "colwise" : "rowwise";
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
    return rows->factor == cut->factor ? "embedding_rowwise"
                                       : "embedding_colwise";
  }
  return std::nullopt;
}

// A plan's parameters, one by one, in words that know one mesh dim.
class Styling {
 public:
  Styling(const Plan& plan, std::int32_t mesh_dim) : plan_(plan) {
    out_.mesh_dim = mesh_dim;
  }

  TorchStyles tensor_parallel(const Graph& graph, const OpLibrary& library) {
    for (const PlannedValue& value : plan_.values) {
      if (value.kind != InputKind::kParameter) continue;
      say(value, tensor_parallel_style(value, graph, library));
    }
    gather_outputs();
    out_.folded = fold(out_.modules);
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
  std::optional<std::string> tensor_parallel_style(
      const PlannedValue& value, const Graph& graph,
      const OpLibrary& library) const {
    const Placement placement = value.tensor.layout[out_.mesh_dim];
    if (!placement.is_shard() || placement.split_factor() != 1) {
      return std::nullopt;
    }
    const auto id = graph.find_value(value.name);
    if (!id) return std::nullopt;
    // A bias is cut with the outputs of its layer.
    if (value.tensor.shape.size() == 1 && value.name.ends_with(".bias")) {
      return "colwise";
    }
    if (value.tensor.shape.size() != 2) return std::nullopt;
    return style_of_cut(graph, library, *id, placement.dim());
  }

  void say(const PlannedValue& value, std::optional<std::string> style) {
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
      said[index(out_.mesh_dim)] = layout[out_.mesh_dim];
    } else if (!layout[out_.mesh_dim].is_replicate()) {
      unsaid(value, "no style cuts it so");
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

  void gather_outputs() {
    std::set<std::string> reduced;  // blocks with a rowwise layer
    for (const ModuleStyle& one : out_.modules) {
      const std::string block = block_of(one.module);
      if (one.style == "rowwise" && !block.empty()) reduced.insert(block);
    }
    for (ModuleStyle& one : out_.modules) {
      if (one.style == "colwise" && !reduced.contains(block_of(one.module))) {
        one.style = "colwise_gather_output";
      }
    }
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

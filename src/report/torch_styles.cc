#include <shardprop/report/torch_styles.h>

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

// layers.3.q_proj -> layers.*.q_proj
std::string folded_name(const std::string& module) {
  std::string out;
  std::size_t begin = 0;
  while (begin <= module.size()) {
    const std::size_t end = std::min(module.find('.', begin), module.size());
    const std::string part = module.substr(begin, end - begin);
    const bool number =
        !part.empty() && std::all_of(part.begin(), part.end(), [](char c) {
          return std::isdigit(static_cast<unsigned char>(c)) != 0;
        });
    out += (begin == 0 ? "" : ".") + (number ? "*" : part);
    begin = end + 1;
  }
  return out;
}

// Layers of one name that are alike as one; those that are not, each.
std::vector<ModuleStyle> fold(const std::vector<ModuleStyle>& modules) {
  std::map<std::string, std::set<std::string>> styles;
  for (const ModuleStyle& one : modules) {
    styles[folded_name(one.module)].insert(one.style);
  }
  std::vector<ModuleStyle> out;
  for (const ModuleStyle& one : modules) {
    const std::string name = folded_name(one.module);
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

// What takes a weight, and whether its rows are the outputs.
enum class Taker { kLinear, kLinearTransposed, kEmbedding, kOther };

Taker taker_of(const Graph& graph, ValueId weight) {
  bool turned = false;
  ValueId at = weight;
  for (int hops = 0; hops < 8; ++hops) {
    const Value& value = graph.value(at);
    if (value.consumers.empty()) return Taker::kOther;
    const Use& use = value.consumers.front();
    const Node& node = graph.node(use.node);
    const std::string_view name = node.op.function->base_name();
    if (name == "embedding") return Taker::kEmbedding;
    if (name == "linear") return Taker::kLinear;
    if (name == "mm" || name == "addmm" || name == "bmm") {
      return turned ? Taker::kLinear : Taker::kLinearTransposed;
    }
    if (name == "permute" || name == "t" || name == "transpose") {
      turned = !turned;
    } else if (name != "_to_copy" && name != "alias" && name != "detach") {
      return Taker::kOther;
    }
    at = node.outputs[0];
  }
  return Taker::kOther;
}

// A plan's parameters, one by one, in words that know one mesh dim.
class Styling {
 public:
  Styling(const Plan& plan, const Graph& graph, std::int32_t mesh_dim)
      : plan_(plan), graph_(graph) {
    out_.mesh_dim = mesh_dim;
  }

  TorchStyles tensor_parallel() {
    for (const PlannedValue& value : plan_.values) {
      if (value.role != ValueRole::kParameter) continue;
      say(value, tensor_parallel_style(value));
    }
    return finish();
  }

  TorchStyles fully_shard() {
    for (const PlannedValue& value : plan_.values) {
      if (value.role != ValueRole::kParameter) continue;
      const Placement placement = value.tensor.layout[out_.mesh_dim];
      const bool sharded = placement.is_shard() && placement.dim() == 0 &&
                           placement.split_factor() == 1;
      say(value, sharded ? std::optional<std::string>("shard") : std::nullopt);
    }
    return finish();
  }

 private:
  std::optional<std::string> tensor_parallel_style(
      const PlannedValue& value) const {
    const Placement placement = value.tensor.layout[out_.mesh_dim];
    if (!placement.is_shard() || placement.split_factor() != 1) {
      return std::nullopt;
    }
    const auto id = graph_.find_value(value.name);
    if (!id) return std::nullopt;
    // A bias is cut with the outputs of its layer.
    if (value.tensor.shape.size() == 1) return "colwise";
    if (value.tensor.shape.size() != 2) return std::nullopt;
    switch (taker_of(graph_, *id)) {
      case Taker::kLinear:
        return placement.dim() == 0 ? "colwise" : "rowwise";
      case Taker::kLinearTransposed:
        return placement.dim() == 1 ? "colwise" : "rowwise";
      case Taker::kEmbedding:
        return placement.dim() == 0 ? "rowwise" : "colwise";
      case Taker::kOther:
        return std::nullopt;
    }
    return std::nullopt;
  }

  void say(const PlannedValue& value, std::optional<std::string> style) {
    const Layout& layout = value.tensor.layout;
    Placements said(static_cast<std::size_t>(layout.mesh_ndim()));
    const std::string module = module_of(value.name);
    const auto known = styles_.find(module);
    if (style && known != styles_.end() && known->second != *style) {
      unsaid(value, "its module is " + known->second + " already");
      style.reset();
    } else if (style) {
      styles_[module] = *style;
      said[static_cast<std::size_t>(out_.mesh_dim)] = layout[out_.mesh_dim];
    } else if (!layout[out_.mesh_dim].is_replicate()) {
      unsaid(value, "no style cuts it so");
    }
    for (std::int32_t m = 0; m < layout.mesh_ndim(); ++m) {
      if (m == out_.mesh_dim || layout[m].is_replicate()) continue;
      unsaid(value, "it lies over " + plan_.mesh.name(m) + " too");
      break;
    }
    if (value.state_layout) {
      unsaid(value, "its gradient and optimizer state lie as " +
                        to_string(*value.state_layout));
    }
    const auto where = Layout::create(std::move(said));
    if (!where) return;
    if (auto pin = Pin::parse(value.name + "=" + to_string(*where))) {
      out_.pins.push_back(*std::move(pin));
    }
  }

  void unsaid(const PlannedValue& value, std::string why) {
    out_.unsaid.push_back({value.name, value.tensor.layout, std::move(why)});
  }

  TorchStyles finish() {
    for (auto& [module, style] : styles_) {
      out_.modules.push_back({module, style});
    }
    out_.folded = fold(out_.modules);
    return std::move(out_);
  }

  const Plan& plan_;
  const Graph& graph_;
  TorchStyles out_;
  std::map<std::string, std::string> styles_;  // by module
};

}  // namespace

TorchStyles tensor_parallel_styles(const Plan& plan, const Graph& graph) {
  return Styling(plan, graph,
                 mesh_dim_named(plan.mesh, {"tp"}, plan.mesh.ndim() - 1))
      .tensor_parallel();
}

TorchStyles fully_shard_styles(const Plan& plan, const Graph& graph) {
  return Styling(plan, graph, mesh_dim_named(plan.mesh, {"dp", "fsdp"}, 0))
      .fully_shard();
}

}  // namespace shardprop

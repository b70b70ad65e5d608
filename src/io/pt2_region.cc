#include "io/pt2_region.h"

#include <algorithm>
#include <string_view>

namespace shardprop::pt2 {
namespace {

constexpr std::string_view kAutocast = "wrap_with_autocast";
constexpr std::string_view kCheckpoints[] = {"wrap_activation_checkpoint",
                                             "tag_activation_checkpoint"};
constexpr std::string_view kRegions[] = {
    kAutocast, kCheckpoints[0],   kCheckpoints[1], "wrap_with_set_grad_enabled",
    "wrap",    "invoke_subgraph", "hints_wrap",    "strict_mode",
};

std::string_view base_name(std::string_view target) {
  return target.substr(target.rfind('.') + 1);
}

void flatten(const Argument& argument, std::vector<Argument>& out) {
  if (const auto* tensors = std::get_if<TensorNames>(&argument)) {
    for (const std::string_view name : *tensors) {
      out.push_back(name.data() == nullptr ? Argument(None{})
                                           : Argument(TensorName{name}));
    }
  } else if (const auto* sizes = std::get_if<std::vector<SymName>>(&argument)) {
    out.insert(out.end(), sizes->begin(), sizes->end());
  } else if (const auto* numbers =
                 std::get_if<std::vector<std::int64_t>>(&argument)) {
    out.insert(out.end(), numbers->begin(), numbers->end());
  } else if (!std::holds_alternative<Text>(argument)) {
    out.push_back(argument);
  }
}

}  // namespace

std::vector<Argument> flattened(const std::vector<Argument>& arguments) {
  std::vector<Argument> out;
  for (const Argument& argument : arguments) flatten(argument, out);
  return out;
}

std::optional<Region> region_of(const Node& node) {
  const std::string_view name = base_name(node.target);
  if (std::find(std::begin(kRegions), std::end(kRegions), name) ==
      std::end(kRegions)) {
    return std::nullopt;
  }
  Region region;
  region.is_autocast = name == kAutocast;
  region.is_checkpoint =
      std::find(std::begin(kCheckpoints), std::end(kCheckpoints), name) !=
      std::end(kCheckpoints);
  for (const NamedArgument& input : node.inputs) {
    const auto* graph = std::get_if<Subgraph>(&input.value);
    if (graph != nullptr) {
      if (region.body != nullptr) return std::nullopt;
      region.body = graph->body.get();
    } else if (region.body != nullptr) {
      flatten(input.value, region.operands);
    }
  }
  if (region.body == nullptr ||
      region.operands.size() < region.body->inputs.size()) {
    return std::nullopt;
  }
  region.operands.resize(region.body->inputs.size());
  return region;
}

}  // namespace shardprop::pt2

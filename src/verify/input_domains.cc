#include "verify/input_domains.h"

#include <algorithm>
#include <string_view>

namespace shardprop::verification {
namespace {

// Integers that nothing looks up: small, so that products stay exact.
constexpr std::int64_t kFewIntegers = 3;

// What one use asks of the operand; 0 where nothing.
std::int64_t table_size(const Node& node, std::uint32_t operand) {
  const OpSchema& op = node.op;
  const std::string_view name = op.function->base_name();
  const auto is = [&](std::string_view argument) {
    return op.has_arg(argument) && op.tensor_arg(argument) == operand;
  };
  if (name == "embedding" && is("indices")) return op.inputs[0].size(0);
  if (name == "embedding_dense_backward" && is("indices")) {
    return op.int_arg("num_weights").value_or(0);
  }
  if (is("index")) {
    const TensorMeta& self = op.inputs[0];
    auto dim = op.has_arg("dim") ? op.int_arg("dim").value_or(0) : 0;
    if (dim < 0) dim += self.rank();
    if (self.rank() > 0 && dim < self.rank()) {
      return self.size(static_cast<int>(dim));
    }
    return 1;
  }
  if (is("target") && name.find("nll") != std::string_view::npos) {
    return op.inputs[0].rank() > 1 ? op.inputs[0].size(1)
                                   : op.inputs[0].size(0);
  }
  if (name == "cross_entropy_loss" && is("target")) {
    return op.inputs[0].rank() > 1 ? op.inputs[0].size(1)
                                   : op.inputs[0].size(0);
  }
  if (name == "one_hot") return op.int_arg("num_classes").value_or(0);
  if (op.has_arg("indices")) {
    // x[i, :, j]: the dim at which the index stands.
    const auto* list = std::get_if<std::vector<TensorArg>>(&op.arg("indices"));
    for (std::size_t d = 0; list != nullptr && d < list->size(); ++d) {
      if ((*list)[d].operand == static_cast<std::int32_t>(operand)) {
        return op.inputs[0].size(static_cast<int>(d));
      }
    }
  }
  return 0;
}

bool asks_positive(const Node& node, std::uint32_t operand) {
  const OpSchema& op = node.op;
  const std::string_view name = op.function->base_name();
  if (name == "log" || name == "log2" || name == "log10" || name == "log1p" ||
      name == "sqrt" || name == "rsqrt") {
    return true;
  }
  if (op.has_arg("running_var") && op.tensor_arg("running_var") == operand) {
    return true;
  }
  return false;
}

// Of floats, zero is never drawn.
bool divides_by(const Node& node, std::uint32_t operand) {
  const OpSchema& op = node.op;
  std::string_view name = op.function->base_name();
  if (name.ends_with('_')) name.remove_suffix(1);
  if (name != "div" && name != "divide" && name != "floor_divide" &&
      name != "remainder" && name != "fmod") {
    return false;
  }
  return op.has_arg("other") && op.tensor_arg("other") == operand;
}

// Whether what stands in this operand stands in the results too.
bool hands_on(const Node& node, std::uint32_t operand) {
  const std::string_view name = node.op.function->base_name();
  if (node.outputs.empty()) return false;
  if (node.op.function->is_view()) return operand == 0;
  if (name == "where") return operand > 0;
  // Not where they look, but what they find there.
  for (const std::string_view lookup :
       {"gather", "index", "index_select", "masked_select", "take",
        "take_along_dim", "_unsafe_index", "_unsafe_masked_index"}) {
    if (name == lookup) return operand == 0;
  }
  // clang-format off
  static constexpr std::string_view kSame[] = {
      "_to_copy", "clone", "copy", "cat", "stack", "slice_scatter",
      "select_scatter", "masked_fill", "_unsafe_view", "constant_pad_nd",
      "reshape", "contiguous", "lift_fresh_copy", "flip", "roll", "clamp",
      "index_put", "scatter", "to", "repeat", "tile", "repeat_interleave",
      "concat", "convert_element_type", "expand_copy", "view_copy",
      "slice_copy", "select_copy", "diagonal_scatter", "sort", "topk", "tril",
      "triu", "amax", "amin", "maximum", "minimum"};
  // clang-format on
  if (std::find(std::begin(kSame), std::end(kSame), name) != std::end(kSame)) {
    return true;
  }
  return false;
}

class Search {
 public:
  explicit Search(const Graph& graph)
      : graph_(graph), seen_(graph.values().size(), false) {}

  InputDomain of(ValueId input) {
    std::fill(seen_.begin(), seen_.end(), false);
    found_ = {};
    visit(input);
    if (found_.below == 0) found_.below = kFewIntegers;
    return found_;
  }

 private:
  void visit(ValueId id) {
    if (seen_[id.index()]) return;
    seen_[id.index()] = true;
    for (const Use& use : graph_.value(id).consumers) {
      const Node& node = graph_.node(use.node);
      if (const std::int64_t size = table_size(node, use.operand); size > 0) {
        found_.below = found_.below == 0 ? size : std::min(found_.below, size);
      }
      found_.positive = found_.positive || asks_positive(node, use.operand);
      found_.nonzero = found_.nonzero || divides_by(node, use.operand);
      if (!hands_on(node, use.operand)) continue;
      for (const ValueId output : node.outputs) visit(output);
    }
  }

  const Graph& graph_;
  std::vector<bool> seen_;
  InputDomain found_;
};

}  // namespace

std::vector<InputDomain> input_domains(const Graph& graph) {
  Search search(graph);
  std::vector<InputDomain> out;
  for (const GraphInput& input : graph.inputs()) {
    out.push_back(search.of(input.value));
  }
  return out;
}

}  // namespace shardprop::verification

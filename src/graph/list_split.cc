#include "graph/list_split.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace shardprop {
namespace {

constexpr std::string_view kForeach = "_foreach_";
constexpr std::string_view kFused = "_fused_";

// Overloads of the operator on tensors that one on lists may be made of.
constexpr std::array<std::string_view, 6> kOverloads = {
    "Tensor", "Scalar", "default", "Tensor_Tensor", "Tensor_Scalar", "other"};

// Where the operator on tensors has another name.
std::string element_operator(std::string_view base) {
  std::string name(base.substr(kForeach.size()));
  if (name == "max") return "amax";
  if (name == "norm") return "linalg_vector_norm";
  return name;
}

// How many elements the lists of tensors have; nullopt where they differ.
std::optional<std::size_t> length_of_lists(const OpSchema& op) {
  std::optional<std::size_t> length;
  for (const Argument& argument : op.args) {
    const auto* list = std::get_if<std::vector<TensorArg>>(&argument);
    if (list == nullptr || list->empty()) continue;
    if (length && *length != list->size()) return std::nullopt;
    length = list->size();
  }
  return length;
}

// The element of a list argument, alone; other arguments as they are.
Argument element_of(const Argument& argument, std::size_t place,
                    std::size_t length, bool keeps_lists) {
  if (const auto* list = std::get_if<std::vector<TensorArg>>(&argument)) {
    if (list->empty()) return argument;
    if (keeps_lists) return std::vector<TensorArg>{(*list)[place]};
    return (*list)[place];
  }
  if (const auto* list = std::get_if<std::vector<double>>(&argument)) {
    if (list->size() == length) return (*list)[place];
  }
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&argument)) {
    if (list->size() == length) return (*list)[place];
  }
  return argument;
}

// The operator `function` on the elements at `place`, if it takes them.
std::optional<NewNode> element_node(
    const NewNode& node, std::shared_ptr<const FunctionSchema> function,
    std::size_t place, std::size_t length, bool keeps_lists) {
  if (function == nullptr) return std::nullopt;
  const auto& declared = function->arguments();
  std::vector<GivenArgument> given;
  std::vector<TensorMeta> metas;
  NewNode out;
  const auto take = [&](TensorArg& tensor) {
    if (tensor.operand == TensorArg::kNone) return;
    const auto operand = static_cast<std::size_t>(tensor.operand);
    tensor.operand = static_cast<std::int32_t>(metas.size());
    metas.push_back(node.op.inputs[operand]);
    out.inputs.push_back(node.inputs[operand]);
  };
  for (std::size_t i = 0; i < node.op.args.size(); ++i) {
    Argument value = element_of(node.op.args[i], place, length, keeps_lists);
    if (std::holds_alternative<NoneArg>(value)) continue;
    if (i >= declared.size()) return std::nullopt;
    if (auto* lone = std::get_if<TensorArg>(&value)) take(*lone);
    if (auto* list = std::get_if<std::vector<TensorArg>>(&value)) {
      for (TensorArg& tensor : *list) take(tensor);
    }
    given.push_back({declared[i].name, std::move(value)});
  }
  auto op =
      make_op_schema(std::move(function), std::move(given), std::move(metas));
  if (!op) return std::nullopt;
  out.op = *std::move(op);
  return out;
}

// The outputs of the whole operator at `place` of each of its result lists;
// nullopt where the results are no such lists.
std::optional<std::vector<std::size_t>> outputs_at(const OpSchema& op,
                                                   std::size_t place,
                                                   std::size_t length) {
  std::vector<std::size_t> out;
  for (std::size_t at = place; at < op.output_slots.size(); at += length) {
    if (op.output_slots[at] == OpSchema::kNotProduced) return std::nullopt;
    out.push_back(static_cast<std::size_t>(op.output_slots[at]));
  }
  if (op.output_slots.size() % length != 0) return std::nullopt;
  return out;
}

std::optional<ListPart> part_at(const NewNode& node, const OpLibrary& library,
                                std::size_t place, std::size_t length) {
  const FunctionSchema& function = *node.op.function;
  const auto outputs = outputs_at(node.op, place, length);
  if (!outputs) return std::nullopt;
  const auto finished = [&](NewNode made) {
    std::vector<std::optional<TensorMeta>> results;
    for (const std::size_t output : *outputs) {
      results.emplace_back(node.op.outputs[output]);
      if (output < node.output_names.size()) {
        made.output_names.push_back(node.output_names[output]);
      }
    }
    // An operator in place returns what it wrote.
    if (made.op.function->is_mutating() && results.empty() &&
        !made.op.function->returns().empty()) {
      results.emplace_back(made.op.inputs.front());
    }
    set_results(made.op, std::move(results));
    made.name = node.name + '.' + std::to_string(place);
    made.module_path = node.module_path;
    made.module_class = node.module_class;
    made.source = node.source;
    made.forward_node = node.forward_node;
    made.decomposed_from = function.name();
    return made;
  };
  if (function.base_name().starts_with(kFused)) {
    auto made = element_node(node, node.op.function, place, length, true);
    if (!made) return std::nullopt;
    return ListPart{finished(*std::move(made)), *outputs};
  }
  const std::string name =
      "aten." + element_operator(function.base_name()) + '.';
  for (const std::string_view overload : kOverloads) {
    auto made = element_node(node, library.find(name + std::string(overload)),
                             place, length, false);
    if (!made) continue;
    NewNode whole = finished(*std::move(made));
    if (!whole.op.function->is_mutating() && !library.check_outputs(whole.op)) {
      continue;
    }
    return ListPart{std::move(whole), *outputs};
  }
  return std::nullopt;
}

}  // namespace

std::vector<ListPart> split_lists(const NewNode& node,
                                  const OpLibrary& library) {
  const std::string_view base = node.op.function->base_name();
  const bool fused = base.starts_with(kFused);
  if (!fused && !base.starts_with(kForeach)) return {};
  const auto length = length_of_lists(node.op);
  if (!length || (fused && *length < 2)) return {};
  std::vector<ListPart> parts;
  for (std::size_t place = 0; place < *length; ++place) {
    auto part = part_at(node, library, place, *length);
    if (!part) return {};
    parts.push_back(*std::move(part));
  }
  return parts;
}

}  // namespace shardprop

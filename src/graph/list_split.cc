#include "graph/list_split.h"

#include "ops/space/foreach.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace shardprop {
namespace {

constexpr std::string_view kFused = "_fused_";

// Returns the common length of the tensor lists; nullopt if the lengths differ.
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

// Returns the same operator on lists of one element.
std::optional<ElementCall> fused_element(const OpSchema& op,
                                         std::size_t place) {
  ElementCall out;
  std::vector<GivenArgument> given;
  std::vector<TensorMeta> metas;
  const auto take = [&](TensorArg& tensor) {
    if (tensor.operand == TensorArg::kNone) return;
    out.operands.push_back(static_cast<std::size_t>(tensor.operand));
    tensor.operand = static_cast<std::int32_t>(metas.size());
    metas.push_back(op.inputs[out.operands.back()]);
  };
  for (std::size_t i = 0; i < op.args.size(); ++i) {
    Argument value = op.args[i];
    if (std::holds_alternative<NoneArg>(value)) continue;
    if (auto* lone = std::get_if<TensorArg>(&value)) take(*lone);
    if (auto* list = std::get_if<std::vector<TensorArg>>(&value);
        list != nullptr && !list->empty()) {
      *list = {(*list)[place]};
      take(list->front());
    }
    given.push_back({op.function->arguments()[i].name, std::move(value)});
  }
  auto made = make_op_schema(op.function, std::move(given), std::move(metas));
  if (!made) return std::nullopt;
  out.op = *std::move(made);
  return out;
}

// Returns one call per place; empty if the operator does not work on lists
// element by element.
std::vector<ElementCall> calls_by_place(const OpSchema& op,
                                        const OpLibrary& library) {
  std::vector<ElementCall> calls;
  if (op.function->base_name().starts_with(kFused)) {
    const auto length = length_of_lists(op);
    if (!length || *length < 2) return {};
    for (std::size_t place = 0; place < *length; ++place) {
      auto call = fused_element(op, place);
      if (!call) return {};
      calls.push_back(*std::move(call));
    }
    return calls;
  }
  const auto form = foreach_form(*op.function, library);
  if (!form) return {};
  auto found = element_calls(*form, op, library);
  return found ? *std::move(found) : std::vector<ElementCall>();
}

// Returns the outputs of the full operator at `place` of each of its result
// lists. Returns nullopt if the results are not lists of this length.
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

NewNode node_of(const NewNode& whole, ElementCall call, std::size_t place,
                const std::vector<std::size_t>& outputs) {
  NewNode made;
  made.op = std::move(call.op);
  for (const std::size_t operand : call.operands) {
    made.inputs.push_back(whole.inputs[operand]);
  }
  std::vector<std::optional<TensorMeta>> results;
  for (const std::size_t output : outputs) {
    results.emplace_back(whole.op.outputs[output]);
    if (output < whole.output_names.size()) {
      made.output_names.push_back(whole.output_names[output]);
    }
  }
  // An in-place operator returns the tensor that it wrote.
  if (made.op.function->is_mutating() && results.empty() &&
      !made.op.function->returns().empty()) {
    results.emplace_back(made.op.inputs.front());
  }
  set_results(made.op, std::move(results));
  made.name = whole.name + '.' + std::to_string(place);
  made.module_path = whole.module_path;
  made.module_class = whole.module_class;
  made.source = whole.source;
  made.forward_node = whole.forward_node;
  made.decomposed_from = whole.op.function->name();
  made.checkpoint = whole.checkpoint;
  return made;
}

}  // namespace

std::vector<ListPart> split_lists(const NewNode& node,
                                  const OpLibrary& library) {
  std::vector<ElementCall> calls = calls_by_place(node.op, library);
  const bool is_fused = node.op.function->base_name().starts_with(kFused);
  std::vector<ListPart> parts;
  for (std::size_t place = 0; place < calls.size(); ++place) {
    auto outputs = outputs_at(node.op, place, calls.size());
    if (!outputs) return {};
    NewNode made = node_of(node, std::move(calls[place]), place, *outputs);
    const bool is_claimed = is_fused || made.op.function->is_mutating();
    if (!is_claimed && !library.check_outputs(made.op)) return {};
    parts.push_back({std::move(made), *std::move(outputs)});
  }
  return parts;
}

}  // namespace shardprop

#include "graph/list_split.h"

#include "ops/space/foreach.h"
#include "ops/space/fused_lists.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace shardprop {
namespace {

// Returns one call per place, or an empty list if the operator does not work on
// lists element by element, or if the call of an element would omit its number.
std::vector<ElementCall> calls_by_place(const OpSchema& op,
                                        const OpLibrary& library) {
  auto fused = fused_calls(op);
  if (!fused.empty()) return fused;
  const auto form = foreach_form(*op.function, library);
  if (!form || form->numbers) return {};
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
  const bool is_fused = is_fused_step(*node.op.function);
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

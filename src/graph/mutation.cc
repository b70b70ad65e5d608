#include "graph/mutation.h"

#include "base/index.h"
#include "base/try.h"
#include "ops/space/view_algebra.h"

#include <algorithm>
#include <utility>

namespace shardprop {
namespace {

// This depth exceeds the views of views of any real program. Carrying writes
// through views generates nodes that the file does not contain, so their number
// needs a limit.
constexpr int kMostViews = 64;
constexpr std::size_t kLeastGenerated = 1000;

tl::unexpected<Error> not_functional(std::string message, std::string help) {
  return fail(ErrorCode::kNotFunctional, std::move(message), std::move(help));
}

const char* const kHelp =
    "make the graph functional first: run_decompositions() of an exported "
    "program does";

// Returns the tensor operands of one argument.
std::vector<std::size_t> operands_of(const OpSchema& op, std::size_t argument) {
  const std::string& name = op.function->arguments()[argument].name;
  if (const auto operand = op.tensor_arg(name)) return {*operand};
  return op.tensor_list_arg(name);
}

// Returns the outputs of each declared result. A list has `list_length`
// outputs; no mutating operator returns two lists of different lengths.
std::vector<std::vector<ValueId>> by_result(const OpSchema& op,
                                            const std::vector<ValueId>& outputs,
                                            std::size_t list_length) {
  std::vector<std::vector<ValueId>> results;
  std::size_t slot = 0;
  for (const ArgumentSchema& result : op.function->returns()) {
    std::vector<ValueId> values;
    if (result.type == ArgumentType::kTensor) {
      const std::size_t count = result.is_list ? list_length : 1;
      for (std::size_t i = 0; i < count && slot < op.output_slots.size();
           ++i, ++slot) {
        const std::int32_t output = op.output_slots[slot];
        values.push_back(output == OpSchema::kNotProduced
                             ? ValueId()
                             : outputs[index(output)]);
      }
    }
    results.push_back(std::move(values));
  }
  return results;
}

// Returns the results of the functional form if inference does not know them.
// Written tensors keep their metas; the other results have the recorded metas.
std::optional<std::vector<std::optional<TensorMeta>>> recorded_results(
    const OpSchema& mutating, const OverloadForm& form) {
  std::vector<std::optional<TensorMeta>> results(
      form.functional->returns().size());
  for (const ArgumentSchema& result : form.functional->returns()) {
    if (result.is_list) return std::nullopt;
  }
  for (const OverloadForm::Write& write : form.writes) {
    const auto operands = operands_of(mutating, write.argument);
    if (operands.size() != 1) return std::nullopt;
    results[write.result] = mutating.inputs[operands.front()];
  }
  for (std::size_t i = 0; i < form.results.size(); ++i) {
    if (!form.results[i]) continue;
    if (i >= mutating.output_slots.size()) return std::nullopt;
    const std::int32_t output = mutating.output_slots[i];
    if (output == OpSchema::kNotProduced) continue;
    results[*form.results[i]] = mutating.outputs[index(output)];
  }
  return results;
}

Result<void> infer(const OpLibrary& library, OpSchema& functional,
                   const OpSchema& mutating, const OverloadForm& form) {
  auto results = library.infer_results(functional);
  if (!results) {
    auto recorded = recorded_results(mutating, form);
    if (!recorded) return fail(std::move(results).error());
    results = *std::move(recorded);
  }
  set_results(functional, *std::move(results));
  return {};
}

}  // namespace

Mutations::Cell& Mutations::cell(ValueId handle) {
  const auto [found, added] = cells_.try_emplace(handle);
  if (added) found->second = {handle, {}, {}, handle, 0, 0};
  return found->second;
}

void Mutations::note_view(ValueId view, ValueId base, ValueId seen) {
  const Cell& viewed = cell(base);
  const ValueId root = viewed.root;
  const int depth = viewed.depth + 1;
  cells_[view] = {view, base, seen, root, depth, versions_[root]};
}

Result<ValueId> Mutations::current(ValueId handle) {
  const auto found = cells_.find(handle);
  if (found == cells_.end()) return handle;
  const std::uint64_t version = versions_[found->second.root];
  if (found->second.version == version) return found->second.now;
  if (found->second.depth > kMostViews) {
    return not_functional("a tensor is written that more than " +
                              std::to_string(kMostViews) +
                              " views of views lead to",
                          kHelp);
  }
  if (found->second.base.valid()) {
    SP_ASSIGN(const ValueId base_now, current(found->second.base));
    if (base_now != found->second.base_seen) {
      SP_CHECK(regenerate(handle, base_now));
    }
  }
  Cell& fresh = cells_.at(handle);
  fresh.version = version;
  return fresh.now;
}

Result<std::vector<ValueId>> Mutations::append_generated(
    NewNode node, const ViewedOperands& viewed) {
  generated_ += 1 + node.op.outputs.size();
  if (generated_ > kLeastGenerated + nodes_.body().values.size() / 2) {
    return not_functional(
        "the writes in place of this graph take too many "
        "steps to carry to all views",
        kHelp);
  }
  return nodes_.append_generated(std::move(node), viewed);
}

Result<std::vector<ValueId>> Mutations::append_generated(
    std::string_view op, std::vector<GivenArgument> arguments,
    std::vector<ValueId> inputs) {
  std::vector<TensorMeta> metas;
  metas.reserve(inputs.size());
  for (const ValueId input : inputs) {
    metas.push_back(nodes_.body().value(input).meta);
  }
  NewNode node;
  SP_ASSIGN(node.op, make_op_schema(library_.find(op), std::move(arguments),
                                    std::move(metas)));
  SP_ASSIGN(auto results, library_.infer_results(node.op));
  set_results(node.op, std::move(results));
  node.inputs = std::move(inputs);
  const ViewedOperands viewed = viewed_operands(node.op, library_);
  return append_generated(std::move(node), viewed);
}

Result<void> Mutations::regenerate(ValueId handle, ValueId base_now) {
  const Value& stale = nodes_.body().value(handle);
  if (!stale.producer.valid()) {
    // The handle is an input that is another name of its base.
    Cell& same = cells_.at(handle);
    same.now = base_now;
    same.base_seen = base_now;
    return {};
  }
  const Node& view = nodes_.body().node(stale.producer);
  const ValueId seen = stale.view_of;
  NewNode again;
  again.name = view.name;
  again.op = view.op;
  again.inputs = view.inputs;
  for (std::size_t i = 0; i < again.inputs.size(); ++i) {
    if (again.inputs[i] != seen) continue;
    again.inputs[i] = base_now;
    again.op.inputs[i] = nodes_.body().value(base_now).meta;
  }
  if (auto results = library_.infer_results(again.op)) {
    set_results(again.op, *std::move(results));
  }
  again.symbolic = view.symbolic;
  again.module_path = view.module_path;
  again.module_class = view.module_class;
  again.source = view.source;
  const std::vector<ValueId> stale_outputs = view.outputs;
  // The regenerated outputs are views of the current base value.
  const auto operand =
      index(std::find(view.inputs.begin(), view.inputs.end(), seen) -
            view.inputs.begin());
  ViewedOperands viewed(stale_outputs.size());
  for (std::size_t i = 0; i < stale_outputs.size(); ++i) {
    if (cells_.contains(stale_outputs[i])) viewed[i] = operand;
  }
  SP_ASSIGN(const std::vector<ValueId> outputs,
            append_generated(std::move(again), viewed));
  // All outputs of the view operator (the pieces of a split) are renewed
  // together.
  for (std::size_t i = 0; i < stale_outputs.size(); ++i) {
    if (!viewed[i]) continue;
    Cell& renewed = cells_.at(stale_outputs[i]);
    renewed.now = outputs[i];
    renewed.base_seen = base_now;
  }
  return {};
}

Result<ValueId> Mutations::carry_back(ValueId handle, ValueId base_now,
                                      ValueId written) {
  const Value& value = nodes_.body().value(handle);
  if (!value.producer.valid()) return written;
  const Node& view = nodes_.body().node(value.producer);
  auto step = write_back(view.op, value.output_index, library_);
  if (!step) return keep_write(view, base_now, written);
  if (step->op.empty()) return written;
  std::vector<ValueId> inputs = {written};
  if (step->takes_base) inputs.insert(inputs.begin(), base_now);
  SP_ASSIGN(const std::vector<ValueId> outputs,
            append_generated(step->op, std::move(step->arguments),
                             std::move(inputs)));
  return outputs.front();
}

// If no operator carries a write back to the viewed tensor, the write becomes
// an operator of its own. It takes the base and the written part.
Result<ValueId> Mutations::keep_write(const Node& view, ValueId base_now,
                                      ValueId written) {
  nodes_.body().notes.emplace_back(
      WriteThroughViewNote{view.name, view.op_name()});
  SP_ASSIGN(FunctionSchema declared,
            FunctionSchema::parse("shardprop::write_through_view(Tensor self, "
                                  "Tensor part) -> Tensor",
                                  "undeclared"));
  const TensorMeta base = nodes_.body().value(base_now).meta;
  NewNode node;
  SP_ASSIGN(node.op,
            make_op_schema(
                std::make_shared<const FunctionSchema>(std::move(declared)),
                {{"self", TensorArg{0}}, {"part", TensorArg{1}}},
                {base, nodes_.body().value(written).meta}));
  set_results(node.op, {base});
  node.inputs = {base_now, written};
  SP_ASSIGN(const std::vector<ValueId> outputs,
            append_generated(std::move(node), ViewedOperands(1)));
  return outputs.front();
}

Result<void> Mutations::write(ValueId handle, ValueId value) {
  const ValueId root = cell(handle).root;
  if (cell(handle).depth > kMostViews) {
    return not_functional("a write passes through more than " +
                              std::to_string(kMostViews) + " views of views",
                          kHelp);
  }
  // Every base is brought up to date before the family counts a new write.
  std::vector<ValueId> chain = {handle};
  while (cell(chain.back()).base.valid()) {
    chain.push_back(cell(chain.back()).base);
  }
  std::vector<ValueId> before;
  for (const ValueId link : chain) {
    SP_ASSIGN(const ValueId now, current(link));
    before.push_back(now);
  }
  const std::uint64_t version = ++versions_[root];
  for (std::size_t i = 0; i < chain.size(); ++i) {
    Cell& written = cell(chain[i]);
    written.now = value;
    written.version = version;
    if (i + 1 == chain.size()) break;
    SP_ASSIGN(value, carry_back(chain[i], before[i + 1], value));
    cell(chain[i]).base_seen = value;
  }
  return {};
}

Result<void> Mutations::make_view(NewNode& node) const {
  const auto form = library_.form(*node.op.function);
  if (!form) {
    return not_functional("`" + node.op.name() + "` of node `" + node.name +
                              "` changes the shape of a tensor in place",
                          "call the operator without the underscore in the "
                          "model");
  }
  std::vector<std::size_t> kept;
  SP_ASSIGN(OpSchema view, rebind(node.op, form->functional, kept));
  view.outputs = std::move(node.op.outputs);
  view.output_slots = std::move(node.op.output_slots);
  std::vector<ValueId> inputs;
  for (const std::size_t operand : kept) inputs.push_back(node.inputs[operand]);
  node.inputs = std::move(inputs);
  node.op = std::move(view);
  return {};
}

Result<std::vector<ValueId>> Mutations::append_mutating(const NewNode& node) {
  const std::vector<ValueId> handles = node.inputs;
  const OpSchema& mutating = node.op;
  const auto form = library_.form(*mutating.function);
  if (!form) {
    return not_functional("`" + mutating.name() + "` of node `" + node.name +
                              "` writes in place and has no functional form",
                          kHelp);
  }
  std::vector<std::size_t> kept;
  SP_ASSIGN(OpSchema functional, rebind(mutating, form->functional, kept));
  SP_CHECK(infer(library_, functional, mutating, *form));

  NewNode added = node;
  added.inputs.clear();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    SP_ASSIGN(const ValueId now, current(handles[kept[i]]));
    added.inputs.push_back(now);
    functional.inputs[i] = nodes_.body().value(now).meta;
  }
  const std::size_t made = functional.outputs.size();
  added.op = std::move(functional);
  if (added.output_names.size() != made) added.output_names.clear();
  added.output_symbolic.resize(made);
  SP_ASSIGN(const std::vector<ValueId> outputs,
            nodes_.append(std::move(added), {}));

  const std::size_t list_length =
      form->writes.empty()
          ? 0
          : operands_of(mutating, form->writes.front().argument).size();
  const auto results =
      by_result(nodes_.body().nodes.back().op, outputs, list_length);
  for (const OverloadForm::Write& write_to : form->writes) {
    const auto operands = operands_of(mutating, write_to.argument);
    const std::vector<ValueId>& values = results[write_to.result];
    for (std::size_t i = 0; i < operands.size() && i < values.size(); ++i) {
      const TensorMeta wanted = mutating.inputs[operands[i]];
      const TensorMeta found = nodes_.body().value(values[i]).meta;
      ValueId value = values[i];
      if (found.shape() != wanted.shape()) {
        return fail(ErrorCode::kShapeMismatch,
                    "node `" + node.name + "` writes " + to_string(found) +
                        " into " + to_string(wanted));
      }
      if (found.dtype() != wanted.dtype()) {
        SP_ASSIGN(
            const std::vector<ValueId> cast,
            append_generated(
                "aten._to_copy.default",
                {{"self", TensorArg{0}}, {"dtype", wanted.dtype()}}, {value}));
        value = cast.front();
      }
      SP_CHECK(write(handles[operands[i]], value));
    }
  }

  std::vector<ValueId> returned;
  for (std::size_t i = 0; i < form->results.size(); ++i) {
    if (form->results[i]) {
      for (const ValueId value : results[*form->results[i]]) {
        if (value.valid()) returned.push_back(value);
      }
      continue;
    }
    for (const OverloadForm::Write& write_to : form->writes) {
      if (write_to.result != i) continue;
      for (const std::size_t operand :
           operands_of(mutating, write_to.argument)) {
        returned.push_back(handles[operand]);
      }
    }
  }
  return returned;
}

}  // namespace shardprop

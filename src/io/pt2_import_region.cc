// Inlines regions, whose nodes replace the region, and follows the file if it
// disagrees with the library.

#include "base/index.h"
#include "base/try.h"
#include "io/pt2_declare.h"
#include "io/pt2_importer.h"

#include <shardprop/ops/op_proofs.h>

#include <algorithm>
#include <utility>

namespace shardprop::pt2 {
// Replaces the node that runs a region by the nodes of the region.
Result<void> Importer::add_region(const Node& node, const Region& region) {
  SP_ASSIGN(Values values, Values::within(*region.body, frame_.values));
  Frame inner{std::move(values),
              {},
              frame_.prefix,
              frame_.is_autocast,
              frame_.checkpoint};
  inner.prefix += std::string(display_name(node)) + '.';
  inner.is_autocast = inner.is_autocast || region.is_autocast;
  if (region.is_checkpoint && inner.checkpoint.empty()) {
    inner.checkpoint = frame_.prefix + std::string(display_name(node));
  }
  for (std::size_t i = 0; i < region.operands.size(); ++i) {
    const auto* own = std::get_if<TensorName>(&region.body->inputs[i]);
    const auto* given = std::get_if<TensorName>(&region.operands[i]);
    if (own == nullptr) continue;
    if (given == nullptr) {
      return fail(ErrorCode::kHigherOrderOp,
                  quote(own->name) + " of a region is given no tensor");
    }
    SP_ASSIGN(const ValueId id, made(given->name));
    inner.scope.emplace(own->name, id);
  }
  std::swap(frame_, inner);
  Result<std::vector<ValueId>> results = region_results(*region.body);
  std::swap(frame_, inner);
  if (!results) return fail(std::move(results).error());
  const std::vector<Argument> outputs = flattened(node.outputs);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto* name = std::get_if<TensorName>(&outputs[i]);
    if (name == nullptr) continue;
    if (i >= results->size() || !(*results)[i].valid()) {
      return fail(ErrorCode::kHigherOrderOp,
                  "a region does not make " + quote(name->name));
    }
    frame_.scope.emplace(name->name, (*results)[i]);
  }
  return {};
}

// Returns the results of the region, read in its own frame. A size is no value.
Result<std::vector<ValueId>> Importer::region_results(const GraphBody& body) {
  for (const Node& inside : body.nodes) {
    if (auto added = add_node(inside); !added) {
      return fail(std::move(added).error().at(quote(display_name(inside))));
    }
  }
  std::vector<ValueId> results;
  for (const Argument& output : flattened(body.outputs)) {
    results.emplace_back();
    if (const auto* name = std::get_if<TensorName>(&output)) {
      SP_ASSIGN(results.back(), made(name->name));
    }
  }
  return results;
}

Result<ValueId> Importer::made(std::string_view name) const {
  const auto found = frame_.scope.find(name);
  if (found == frame_.scope.end()) {
    return fail(ErrorCode::kDanglingName, quote(name) + " is never made");
  }
  return found->second;
}

// Autocast casts the operands to the dtype of the result, which is in the file.
Result<void> Importer::cast_operands(NewNode& node) {
  if (node.op.outputs.empty() || library_.check_outputs(node.op)) return {};
  const DType wanted = node.op.outputs.front().dtype();
  if (!is_floating(wanted)) return {};
  OpSchema op = node.op;
  for (TensorMeta& meta : op.inputs) {
    if (!is_floating(meta.dtype())) continue;
    SP_ASSIGN(meta, TensorMeta::create(meta.shape(), meta.strides(), wanted));
  }
  if (!library_.check_outputs(op)) return {};
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    if (op.inputs[i] == node.op.inputs[i]) continue;
    SP_ASSIGN(const std::vector<ValueId> cast,
              builder_.add_op(
                  "aten._to_copy.default",
                  {{"self", TensorArg{0}}, {"dtype", wanted}}, {node.inputs[i]},
                  frame_.prefix + "autocast_" + std::to_string(casts_++)));
    node.inputs[i] = cast.front();
    op.inputs[i] = builder_.meta(cast.front());
  }
  node.op = std::move(op);
  return {};
}

// True if a later node or an output of the program reads the value.
bool Importer::is_read(std::string_view name) const {
  // The nodes of a region are not in the list of the program's nodes.
  if (!frame_.prefix.empty()) return true;
  const auto reads = [&](const Argument& argument) {
    if (const auto* one = std::get_if<TensorName>(&argument)) {
      return one->name == name;
    }
    const auto* list = std::get_if<TensorNames>(&argument);
    const auto* foreign = std::get_if<Foreign>(&argument);
    if (list == nullptr && foreign != nullptr) list = &foreign->tensors;
    return list != nullptr &&
           std::find(list->begin(), list->end(), name) != list->end();
  };
  return std::any_of(program_.outputs.begin(), program_.outputs.end(), reads) ||
         std::any_of(program_.nodes.begin(), program_.nodes.end(),
                     [&](const Node& node) {
                       return std::any_of(node.inputs.begin(),
                                          node.inputs.end(),
                                          [&](const NamedArgument& input) {
                                            return reads(input.value);
                                          });
                     });
}

// Removes extra dims that PyTorch wrote. Up to PyTorch 2.12, the meta kernel of
// LSTM gives the last states an extra dim of size 1, [layers, 1, batch,
// hidden]. A result that no node reads gets the shape that the operator
// produces. Returns true if the results have extra dims of size 1 and differ in
// nothing else.
bool Importer::drop_extra_dims(const Node& node, NewNode& added) {
  auto expected = library_.infer_results(added.op);
  const auto& slots = added.op.output_slots;
  if (!expected || expected->size() != slots.size()) return false;
  const auto without_ones = [](const Dims& shape) {
    std::vector<std::int64_t> kept;
    for (const std::int64_t size : shape) {
      if (size != 1) kept.push_back(size);
    }
    return kept;
  };
  bool has_extra = false;
  std::vector<std::size_t> unread;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] == OpSchema::kNotProduced || !(*expected)[i]) continue;
    const TensorMeta& written = added.op.outputs[index(slots[i])];
    const TensorMeta& made = *(*expected)[i];
    if (written.dtype() != made.dtype()) return false;
    if (written.shape() == made.shape()) continue;
    if (written.rank() <= made.rank() ||
        without_ones(written.shape()) != without_ones(made.shape())) {
      return false;
    }
    has_extra = true;
    const auto* name = i < node.outputs.size()
                           ? std::get_if<TensorName>(&node.outputs[i])
                           : nullptr;
    if (name != nullptr && !is_read(name->name)) unread.push_back(i);
  }
  for (const std::size_t i : unread) {
    const std::size_t output = index(slots[i]);
    added.op.outputs[output] = *(*expected)[i];
    if (output < added.output_symbolic.size()) {
      added.output_symbolic[output].clear();
    }
  }
  return has_extra;
}

Result<void> Importer::take_as_written(const Node& node, NewNode& added) {
  added.as_written = true;
  if (fitting_.contains(added.op)) return {};
  auto fits = library_.check_outputs(added.op);
  if (fits) {
    fitting_.add(added.op);
    return {};
  }
  const bool is_taken = library_.infer_results(added.op).has_value();
  const bool has_extra_dims = is_taken && drop_extra_dims(node, added);
  if (has_extra_dims && library_.check_outputs(added.op)) {
    builder_.add_note(ExtraDimsNote{std::string(display_name(node))});
    return {};
  }
  const bool is_known = is_taken ? op_proof(added.op.name()) == "torch"
                                 : added.op.function->is_view();
  if (is_known && !has_extra_dims &&
      fits.error().code == ErrorCode::kShapeMismatch) {
    return fail(std::move(fits).error());
  }
  AsWrittenNote note{
      std::string(display_name(node)), {fits.error().message}, !is_taken};
  note.findings.insert(note.findings.end(), fits.error().notes.begin(),
                       fits.error().notes.end());
  builder_.add_note(std::move(note));
  return {};
}

}  // namespace shardprop::pt2

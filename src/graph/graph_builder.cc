#include <shardprop/graph/graph_builder.h>
#include <shardprop/ops/shape_inference.h>

#include "base/try.h"
#include "graph/mutation.h"
#include "graph/node_list.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace shardprop {
namespace {

// What a file says a node returns, against what its operator returns. Strides
// depend on kernels and are taken as given.
Result<void> check_results(const NewNode& node) {
  const auto inferred = infer_results(node.op);
  if (!inferred) {
    if (inferred.error().code == ErrorCode::kNoShapeInference) return {};
    return fail(Error(inferred.error()).at("node " + node.name));
  }
  const std::size_t slots = node.op.output_slots.size();
  bool fits = slots == inferred->size();
  for (std::size_t i = 0; fits && i < slots; ++i) {
    const std::int32_t output = node.op.output_slots[i];
    // Kernels may leave out what the declaration promises, and the other way
    // round.
    if (output == OpSchema::kNotProduced || !(*inferred)[i]) continue;
    const TensorMeta& given = node.op.outputs[static_cast<std::size_t>(output)];
    fits = given.shape() == (*inferred)[i]->shape() &&
           given.dtype() == (*inferred)[i]->dtype();
  }
  if (fits) return {};
  Error error{ErrorCode::kShapeMismatch,
              "`" + node.op.name() + "` returns something else than is written",
              "node " + node.name,
              {},
              "the file was changed by hand, or comes from another release"};
  for (std::size_t i = 0; i < node.op.outputs.size() && i < 8; ++i) {
    error.notes.push_back("written:  " + to_string(node.op.outputs[i]));
  }
  for (std::size_t i = 0; i < inferred->size() && i < 8; ++i) {
    if ((*inferred)[i]) {
      error.notes.push_back("expected: " + to_string(*(*inferred)[i]));
    }
  }
  return fail(std::move(error));
}

}  // namespace

class GraphBuilder::Impl {
 public:
  Impl(std::string name, const OpRegistry& op_registry)
      : registry(op_registry),
        nodes(std::move(name)),
        mutations(nodes, op_registry) {}

  const OpRegistry& registry;
  NodeList nodes;
  Mutations mutations;
  std::vector<NewOutput> outputs;
};

GraphBuilder::GraphBuilder(std::string name, const OpRegistry& registry)
    : impl_(std::make_unique<Impl>(std::move(name), registry)) {}
GraphBuilder::~GraphBuilder() = default;

void GraphBuilder::expect(std::size_t nodes, std::size_t values) {
  impl_->nodes.expect(nodes, values);
}

Result<ValueId> GraphBuilder::add_input(NewInput input) {
  const ValueId shared = input.shares_storage_with;
  if (shared.valid() && meta(shared) != input.meta) {
    return fail(ErrorCode::kShapeMismatch,
                "`" + input.name + "` is " + to_string(input.meta) +
                    " and shares its storage with " + to_string(meta(shared)));
  }
  SP_ASSIGN(const ValueId id, impl_->nodes.add_input(std::move(input)));
  if (shared.valid()) impl_->mutations.note_view(id, shared, shared);
  return id;
}

Result<std::vector<ValueId>> GraphBuilder::add_node(NewNode node) {
  if (node.op.function->has_tag("inplace_view")) {
    return fail(ErrorCode::kNotFunctional,
                "`" + node.op.name() + "` of node `" + node.name +
                    "` changes the shape of a tensor in place",
                "call the operator without the underscore in the model");
  }
  SP_CHECK(check_results(node));
  if (node.op.function->is_mutating()) {
    return impl_->mutations.append_mutating(node);
  }
  const std::vector<ValueId> handles = node.inputs;
  for (std::size_t i = 0; i < handles.size(); ++i) {
    SP_ASSIGN(node.inputs[i], impl_->mutations.current(handles[i]));
    if (node.inputs[i] != handles[i]) {
      node.op.inputs[i] = meta(node.inputs[i]);
    }
  }
  const std::vector<ValueId> inputs = node.inputs;
  SP_ASSIGN(std::vector<ValueId> outputs, impl_->nodes.append(std::move(node)));
  for (const ValueId output : outputs) {
    const ValueId viewed = impl_->nodes.body().value(output).view_of;
    if (!viewed.valid()) continue;
    const auto operand = static_cast<std::size_t>(
        std::find(inputs.begin(), inputs.end(), viewed) - inputs.begin());
    impl_->mutations.note_view(output, handles[operand], viewed);
  }
  return outputs;
}

Result<std::vector<ValueId>> GraphBuilder::add_op(
    std::string_view op, std::vector<GivenArgument> arguments,
    std::vector<ValueId> inputs, std::string name) {
  auto function = impl_->registry.find(op);
  if (function == nullptr) {
    return fail(ErrorCode::kUnknownOperator,
                "`" + std::string(op) + "` is not a declared operator",
                impl_->registry.suggest(op));
  }
  std::vector<TensorMeta> metas;
  metas.reserve(inputs.size());
  for (const ValueId input : inputs) metas.push_back(meta(input));
  NewNode node;
  node.name = std::move(name);
  SP_ASSIGN(node.op, make_op_schema(std::move(function), std::move(arguments),
                                    std::move(metas)));
  if (node.op.inputs.size() != inputs.size()) {
    return fail(ErrorCode::kArgumentType,
                "`" + node.op.name() + "` names a tensor twice",
                "give it twice among the inputs");
  }
  SP_ASSIGN(auto results, infer_results(node.op));
  set_results(node.op, std::move(results));
  node.inputs = std::move(inputs);
  return add_node(std::move(node));
}

void GraphBuilder::add_output(NewOutput output) {
  impl_->outputs.push_back(output);
}

void GraphBuilder::add_symbol(Symbol symbol) {
  impl_->nodes.body().symbols.push_back(std::move(symbol));
}

void GraphBuilder::add_guard(Guard guard) {
  impl_->nodes.body().guards.push_back(std::move(guard));
}

void GraphBuilder::add_note(std::string note) {
  impl_->nodes.body().notes.push_back(std::move(note));
}

const TensorMeta& GraphBuilder::meta(ValueId value) const {
  return impl_->nodes.body().value(value).meta;
}

Result<Graph> GraphBuilder::build() && {
  std::vector<GraphOutput>& outputs = impl_->nodes.body().outputs;
  std::unordered_set<ValueId> updated;
  for (const NewOutput& output : impl_->outputs) {
    SP_ASSIGN(const ValueId value, impl_->mutations.current(output.value));
    outputs.push_back({value, output.kind, output.target});
    if (output.kind == OutputKind::kUpdate) updated.insert(output.target);
  }
  // Inputs that were written in place become outputs, as a functional program
  // has them.
  const std::vector<GraphInput> inputs = impl_->nodes.body().inputs;
  for (const GraphInput& input : inputs) {
    SP_ASSIGN(const ValueId now, impl_->mutations.current(input.value));
    if (now != input.value && !updated.contains(input.value)) {
      outputs.push_back({now, OutputKind::kUpdate, input.value});
    }
  }
  return Graph(impl_->nodes.finish());
}

}  // namespace shardprop

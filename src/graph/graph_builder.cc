#include <shardprop/graph/graph_builder.h>

#include "base/try.h"
#include "graph/list_split.h"
#include "graph/mutation.h"
#include "graph/node_list.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace shardprop {
class GraphBuilder::Impl {
 public:
  Impl(std::string name, const OpLibrary& op_library)
      : library(op_library),
        nodes(std::move(name)),
        mutations(nodes, op_library) {}

  const OpLibrary& library;
  NodeList nodes;
  Mutations mutations;
  std::vector<NewOutput> outputs;
};

GraphBuilder::GraphBuilder(std::string name, const OpLibrary& library)
    : impl_(std::make_unique<Impl>(std::move(name), library)) {}
GraphBuilder::~GraphBuilder() = default;

void GraphBuilder::expect(std::size_t nodes, std::size_t values) {
  impl_->nodes.expect(nodes, values);
}

Result<ValueId> GraphBuilder::add_input(NewInput input) {
  if (!is_of_graph(input.kind)) {
    return fail(ErrorCode::kInvalidArgument,
                "`" + input.name + "` is an input of kind " +
                    std::string(to_string(input.kind)) +
                    ", which graphs do not have");
  }
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
  if (const auto parts = split_lists(node, impl_->library); !parts.empty()) {
    std::vector<ValueId> outputs(node.op.outputs.size());
    for (const ListPart& part : parts) {
      SP_ASSIGN(const std::vector<ValueId> made, add_node(part.node));
      for (std::size_t i = 0; i < part.outputs.size(); ++i) {
        outputs[part.outputs[i]] = made[i];
      }
    }
    return outputs;
  }
  if (!node.as_written) {
    if (auto fits = impl_->library.check_outputs(node.op); !fits) {
      return fail(std::move(fits).error().at("node " + node.name));
    }
  }
  if (node.op.function->has_tag("inplace_view")) {
    SP_CHECK(impl_->mutations.make_view(node));
  }
  if (node.op.function->is_mutating()) {
    return impl_->mutations.append_mutating(node);
  }
  // The metas of the source program decide, because their strides distinguish
  // views from copies.
  const ViewedOperands viewed = viewed_operands(node.op, impl_->library);
  const std::vector<ValueId> handles = node.inputs;
  for (std::size_t i = 0; i < handles.size(); ++i) {
    SP_ASSIGN(node.inputs[i], impl_->mutations.current(handles[i]));
    if (node.inputs[i] != handles[i]) {
      node.op.inputs[i] = meta(node.inputs[i]);
    }
  }
  const std::vector<ValueId> inputs = node.inputs;
  SP_ASSIGN(std::vector<ValueId> outputs,
            impl_->nodes.append(std::move(node), viewed));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!viewed[i]) continue;
    impl_->mutations.note_view(outputs[i], handles[*viewed[i]],
                               inputs[*viewed[i]]);
  }
  return outputs;
}

Result<std::vector<ValueId>> GraphBuilder::add_op(
    std::string_view op, std::vector<GivenArgument> arguments,
    std::vector<ValueId> inputs, std::string name) {
  auto function = impl_->library.find(op);
  if (function == nullptr) {
    return fail(ErrorCode::kUnknownOperator,
                "`" + std::string(op) + "` is not a declared operator",
                impl_->library.suggest(op));
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
  SP_ASSIGN(auto results, impl_->library.infer_results(node.op));
  set_results(node.op, std::move(results));
  node.inputs = std::move(inputs);
  return add_node(std::move(node));
}

Result<void> GraphBuilder::write(ValueId tensor, ValueId value) {
  return impl_->mutations.write(tensor, value);
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

void GraphBuilder::set_device(std::string kind) {
  impl_->nodes.body().device = std::move(kind);
}

void GraphBuilder::add_note(ReadingNote note) {
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
  // An input that was written in place becomes an output, as in a functional
  // program.
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

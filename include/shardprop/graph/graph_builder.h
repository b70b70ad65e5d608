// `GraphBuilder` makes a Graph, node by node in schedule order.
//
//   const auto library = OpLibrary::standard();
//   GraphBuilder builder("mlp", *library);
//   ValueId x = *builder.add_input({.kind = InputKind::kUser, .name = "x",
//                                   .meta = *TensorMeta::parse("f32[16,8]")});
//   auto y = builder.add_op("aten.relu.default", {{"", TensorArg{0}}}, {x});
//   builder.add_output({.value = y->front()});
//   Result<Graph> graph = std::move(builder).build();
//
// Programs may have in-place and out= operators. The builder makes them
// functional:
//
// 1. The functional overload replaces the operator, with a cast to the written
//    tensor's dtype if the dtypes differ.
// 2. Later uses of the written value and of its views read the result.
// 3. An input that was written gets an update output.
//
// A write through a view is applied to the base (slice_scatter, select_scatter,
// the inverse of a permutation or reshape). A write through any other view
// stays one operator, and the graph has a note.
#pragma once

#include <shardprop/graph/graph.h>
#include <shardprop/ops/op_library.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

// `NewInput` describes an input that is added to a graph.
struct NewInput {
  InputKind kind = InputKind::kUser;
  std::string name;
  std::string qualified_name;        // empty: same as `name`
  std::vector<std::string> aliases;  // more qualified names of the same tensor
  TensorMeta meta;
  bool persistent = true;
  std::vector<SymbolicDim> symbolic;
  ValueId shares_storage_with;  // another input that is the same tensor
};

// `NewNode` describes a node that is added to a graph.
struct NewNode {
  std::string name;  // empty: derived from the operator's name
  // The schema with outputs and output_slots; its inputs equal the metas of
  // `inputs`.
  OpSchema op;
  std::vector<ValueId> inputs;
  std::vector<std::string> output_names;  // empty: derived from the node's name
  std::vector<std::vector<SymbolicDim>> output_symbolic;  // or empty
  std::vector<SymbolicArg> symbolic;
  std::string module_path;
  std::string module_class;
  SourceLocation source;
  std::string
      forward_node;  // name of an earlier node; unknown ones are dropped
  std::string second_run_of;  // as forward_node
  NodeId draws_as;            // Node::draws_as
  std::string decomposed_from;
  CheckpointMark checkpoint;
  // If true, its outputs are taken as stated, even if the library infers
  // others.
  bool as_written = false;
};

// `NewOutput` describes an output that is added to a graph.
struct NewOutput {
  ValueId value;
  OutputKind kind = OutputKind::kUser;
  ValueId target;
};

class GraphBuilder {
 public:
  // `library` must outlive the builder, but not the graph.
  GraphBuilder(std::string name, const OpLibrary& library);
  ~GraphBuilder();
  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  // Reserves memory for the expected numbers of nodes and values. This is a
  // hint, not a limit.
  void expect(std::size_t nodes, std::size_t values);
  // Sets Graph::device().
  void set_device(std::string kind);

  // Errors: kDuplicateName, kShapeMismatch (the input with which it shares a
  // buffer has another shape), kInvalidArgument (a kind that graphs do not
  // have).
  Result<ValueId> add_input(NewInput input);
  // Adds a node and returns its results, one per op.outputs. Errors:
  // kDuplicateName, kNotFunctional.
  Result<std::vector<ValueId>> add_node(NewNode node);
  // Adds a node from its arguments, with inferred outputs. Additional errors:
  // kUnknownOperator and those of make_op_schema and OpLibrary::infer_results.
  Result<std::vector<ValueId>> add_op(std::string_view op,
                                      std::vector<GivenArgument> arguments,
                                      std::vector<ValueId> inputs,
                                      std::string name = {});
  // Makes later uses of `tensor` read `value`, which must have the same meta.
  // Views of `tensor` and the base of `tensor` change accordingly. Error:
  // kNotFunctional.
  Result<void> write(ValueId tensor, ValueId value);
  void add_output(NewOutput output);

  void add_symbol(Symbol symbol);
  void add_guard(Guard guard);
  void add_note(ReadingNote note);

  const TensorMeta& meta(ValueId value) const;

  // Makes the graph; the builder cannot be used afterwards.
  Result<Graph> build() &&;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardprop

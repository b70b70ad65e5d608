// GraphBuilder: makes a Graph, node by node in schedule order.
//
//   const auto library = OpLibrary::standard();
//   GraphBuilder builder("mlp", *library);
//   ValueId x = *builder.add_input({.kind = InputKind::kUser, .name = "x",
//                                   .meta = *TensorMeta::parse("f32[16,8]")});
//   auto y = builder.add_op("aten.relu.default", {{"", TensorArg{0}}}, {x});
//   builder.add_output({.value = y->front()});
//   Result<Graph> graph = std::move(builder).build();
//
// Programs with in-place and out= operators may be given as they are. The
// builder makes them functional: the functional overload takes the operator's
// place (cast back to the written tensor's dtype where they differ), later uses
// of the written value and of its views see the result, and an input that was
// written becomes an update output. A write through a view is carried back to
// what it views (slice_scatter, select_scatter, the inverse of a permutation or
// reshape); what nothing carries back stays one operator, with a note.
#pragma once

#include <shardprop/graph/graph.h>
#include <shardprop/ops/op_library.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

struct NewInput {
  InputKind kind = InputKind::kUser;
  std::string name;
  std::string qualified_name;        // empty: the name
  std::vector<std::string> aliases;  // more qualified names of the same tensor
  TensorMeta meta;
  bool persistent = true;
  std::vector<SymbolicDim> symbolic;
  ValueId shares_storage_with;  // an input that is the same tensor
};

struct NewNode {
  std::string name;  // empty: made from the operator's
  // outputs and output_slots filled in; inputs equal to the metas of `inputs`.
  OpSchema op;
  std::vector<ValueId> inputs;
  std::vector<std::string> output_names;  // empty: made from the node's name
  std::vector<std::vector<SymbolicDim>> output_symbolic;  // or empty
  std::vector<SymbolicArg> symbolic;
  std::string module_path;
  std::string module_class;
  SourceLocation source;
  std::string
      forward_node;  // name of an earlier node; unknown ones are dropped
  std::string decomposed_from;
  // Its outputs are facts, whatever the library would infer.
  bool as_written = false;
};

struct NewOutput {
  ValueId value;
  OutputKind kind = OutputKind::kUser;
  ValueId target;
};

class GraphBuilder {
 public:
  // `library` must outlive the builder; not the graph.
  GraphBuilder(std::string name, const OpLibrary& library);
  ~GraphBuilder();
  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  // How large the graph is going to be, if all goes well: it grows no room
  // beyond that. No promise.
  void expect(std::size_t nodes, std::size_t values);
  // See Graph::device().
  void set_device(std::string kind);

  // Errors: kDuplicateName, kShapeMismatch (another shape than the input that it
  // shares its storage with), kInvalidArgument (a kind that graphs do not have).
  Result<ValueId> add_input(NewInput input);
  // The values the node makes, one per op.outputs. Errors: kDuplicateName,
  // kNotFunctional.
  Result<std::vector<ValueId>> add_node(NewNode node);
  // The same from arguments, with inferred outputs. Errors also:
  // kUnknownOperator and those of make_op_schema and OpLibrary::infer_results.
  Result<std::vector<ValueId>> add_op(std::string_view op,
                                      std::vector<GivenArgument> arguments,
                                      std::vector<ValueId> inputs,
                                      std::string name = {});
  // From now on `tensor` is `value`, which has its meta: so it is for what views
  // it and for what it views. Error: kNotFunctional.
  Result<void> write(ValueId tensor, ValueId value);
  void add_output(NewOutput output);

  void add_symbol(Symbol symbol);
  void add_guard(Guard guard);
  void add_note(std::string note);

  const TensorMeta& meta(ValueId value) const;

  // The builder is spent afterwards.
  Result<Graph> build() &&;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardprop

// Helpers that build graphs in a few lines.
#pragma once

#include <doctest/doctest.h>
#include <shardprop/graph/graph_builder.h>

#include <string>
#include <utility>
#include <vector>

#include "support/standard_library.h"

namespace shardprop {

inline TensorMeta meta(const char* text) {
  return TensorMeta::parse(text).value();
}

inline Argument ints(std::vector<std::int64_t> list) { return list; }

struct GraphFixture {
  const OpLibrary& library = testing::standard_library();
  GraphBuilder builder{"test", library};

  ValueId input(const char* name, const char* text,
                InputKind kind = InputKind::kUser, const char* target = "") {
    NewInput added;
    added.kind = kind;
    added.name = name;
    added.qualified_name = target;
    added.meta = meta(text);
    const auto id = builder.add_input(added);
    REQUIRE(id);
    return *id;
  }
  // Tensors by position, then the rest by name.
  Result<std::vector<ValueId>> try_ops(const char* op,
                                       const std::vector<ValueId>& tensors,
                                       std::vector<GivenArgument> rest = {}) {
    std::vector<GivenArgument> arguments;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      arguments.push_back({"", TensorArg{static_cast<std::int32_t>(i)}});
    }
    for (GivenArgument& argument : rest) {
      arguments.push_back(std::move(argument));
    }
    return builder.add_op(op, std::move(arguments), tensors);
  }
  std::vector<ValueId> ops(const char* op, const std::vector<ValueId>& tensors,
                           std::vector<GivenArgument> rest = {}) {
    auto made = try_ops(op, tensors, std::move(rest));
    if (!made) FAIL(to_string(made.error()));
    return *std::move(made);
  }
  ValueId op(const char* name, const std::vector<ValueId>& tensors,
             std::vector<GivenArgument> rest = {}) {
    return ops(name, tensors, std::move(rest)).front();
  }
  void output(ValueId value) {
    builder.add_output({value, OutputKind::kUser, {}});
  }
  Graph build() {
    auto graph = std::move(builder).build();
    if (!graph) FAIL(to_string(graph.error()));
    return *std::move(graph);
  }
};

// "mm(x, w); relu(mm)": names of operators and operands, for comparing.
inline std::string listing(const Graph& graph) {
  std::string out;
  for (const Node& node : graph.nodes()) {
    if (!out.empty()) out += "; ";
    out += std::string(node.op.function->base_name()) + '(';
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (i > 0) out += ", ";
      out += graph.value(node.inputs[i]).name;
    }
    out += ')';
    for (const ValueId output : node.outputs) {
      out += ' ' + graph.value(output).name;
    }
  }
  return out;
}

}  // namespace shardprop

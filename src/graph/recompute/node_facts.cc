#include "graph/recompute/node_facts.h"

#include "graph/analysis/view_source.h"

#include <shardprop/graph/sym_expr.h>

#include <algorithm>
#include <cstddef>
#include <string>

namespace shardprop {
namespace {

bool is_input_memory(const Graph& graph, ValueId value) {
  return graph.value(graph.buffer(graph.value(value).buffer).base()).is_input();
}

}  // namespace

NodeFacts::NodeFacts(const Graph& graph, const OpLibrary& library)
    : graph_(graph), spaces_(library), updates_(graph.buffers().size()) {
  for (const GraphOutput& output : graph.outputs()) {
    if (output.kind == OutputKind::kUpdate) {
      updates_[graph.value(output.value).buffer.index()] = true;
    }
  }
}

OperatorFacts NodeFacts::of(const Node& node) const {
  OperatorFacts facts;
  facts.runs_once =
      node.outputs.empty() || gives_update(node) || has_size_of_data(node);
  const IndexSpace* space = spaces_.of(node.op);
  if (space == nullptr) return facts;
  facts.is_view = runs_as_view(*space);
  facts.is_attention = space->product == ProductKind::kAttention;
  facts.is_matmul = space->flops_per_point > 0 && !facts.is_attention;
  if (space->writes_into != IndexSpace::kNothing) {
    const ValueId written =
        node.inputs[static_cast<std::size_t>(space->writes_into)];
    facts.runs_once = facts.runs_once || is_input_memory(graph_, written);
  }
  return facts;
}

bool NodeFacts::gives_update(const Node& node) const {
  return std::any_of(node.outputs.begin(), node.outputs.end(),
                     [&](ValueId output) {
                       return updates_[graph_.value(output).buffer.index()];
                     });
}

// torch.export names sizes that depend on data u0, u1, ...
bool NodeFacts::has_size_of_data(const Node& node) const {
  const auto is_of_data = [](const SymbolicDim& dim) {
    const std::vector<std::string> symbols = dim.size.symbols();
    return dim.size.is_opaque() || std::any_of(symbols.begin(), symbols.end(),
                                               [](const std::string& name) {
                                                 return name.starts_with('u');
                                               });
  };
  return std::any_of(node.outputs.begin(), node.outputs.end(),
                     [&](ValueId output) {
                       const Value& value = graph_.value(output);
                       return std::any_of(value.symbolic.begin(),
                                          value.symbolic.end(), is_of_data);
                     });
}

}  // namespace shardprop

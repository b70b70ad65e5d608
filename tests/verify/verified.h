// Plans example graphs on a machine with expensive compute, lowers and verifies
// them.
#pragma once

#include "support/dear_topology.h"
#include "support/result_checks.h"

#include <shardprop/graph/graph_builder.h>
#include <shardprop/io/load_graph.h>
#include <shardprop/lower/lower.h>
#include <shardprop/plan/make_plan.h>
#include <shardprop/strategy/op_strategy.h>
#include <shardprop/verify/verify.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace shardprop::testing {

inline const std::shared_ptr<const OpLibrary>& shared_library() {
  static const auto kLibrary = OpLibrary::standard();
  return kLibrary;
}

inline Graph tiny_graph(const std::string& name) {
  return value_of(load_graph("examples/graphs/tiny/" + name + ".json.gz",
                             *shared_library()));
}

inline PlanOptions quick_options() {
  PlanOptions options;
  options.work_limit = 20'000'000;
  options.optimizer = Optimizer::kNone;
  return options;
}

inline Plan planned(const Graph& graph, const std::string& mesh,
                    const PlanOptions& options = quick_options()) {
  return value_of(make_plan(graph, value_of(DeviceMesh::parse(mesh)),
                            dear_compute(), *shared_library(), options));
}

// Makes the first node of a graph use the strategy.
inline ForcedStrategy forced_first_node(const PlacementStrategy& strategy,
                                        const LayoutTable& layouts) {
  ForcedStrategy forced;
  forced.node = NodeId(0);
  for (const LayoutId id : strategy.inputs) forced.takes.push_back(layouts[id]);
  for (const LayoutId id : strategy.outputs) {
    forced.makes.push_back(layouts[id]);
  }
  return forced;
}

inline Expected expected_of(const Graph& graph, const Plan& plan,
                            const VerifyOptions& options = {}) {
  return value_of(
      Expected::create(graph, shared_library(), optimizer_of(plan), options));
}

// A graph of that call alone.
inline Result<Graph> graph_of(const OpSchema& op) {
  GraphBuilder builder("call", *shared_library());
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    inputs.push_back(
        value_of(builder.add_input({.kind = InputKind::kUser,
                                    .name = "x" + std::to_string(i),
                                    .meta = op.inputs[i]})));
  }
  NewNode node;
  node.name = "call";
  node.op = op;
  node.inputs = std::move(inputs);
  for (const ValueId value : value_of(builder.add_node(std::move(node)))) {
    builder.add_output({.value = value});
  }
  return std::move(builder).build();
}

}  // namespace shardprop::testing

// Plans example graphs on a machine with expensive compute, lowers and verifies
// them.
#pragma once

#include "support/dear_topology.h"
#include "support/result_checks.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/lower/lower.h>
#include <shardprop/plan/make_plan.h>
#include <shardprop/verify/verify.h>

#include <memory>
#include <string>
#include <utility>

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

inline Expected expected_of(const Graph& graph, const Plan& plan,
                            const VerifyOptions& options = {}) {
  return value_of(
      Expected::create(graph, shared_library(), optimizer_of(plan), options));
}

}  // namespace shardprop::testing

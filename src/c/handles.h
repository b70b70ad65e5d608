// The types of the objects that the handles of the C API hold.
#pragma once

#include "c/handle_table.h"

#include <shardprop.h>
#include <shardprop/graph/graph.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/ops/op_schema.h>
#include <shardprop/propagate/caching_propagator.h>
#include <shardprop/request/plan_request.h>

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop::c {

struct ErrorObject {
  Error error;
  std::string text;
};

struct SpecObject {
  TensorSpec spec;
  std::string text;
  std::string layout;
};

inline SpecObject spec_object(TensorSpec spec) {
  std::string text = to_string(spec);
  std::string layout = to_string(spec.layout());
  return {std::move(spec), std::move(text), std::move(layout)};
}

// Arguments as they were given; the call they make is worked out when it is
// first asked for.
struct CallObject {
  std::shared_ptr<const OpLibrary> library;
  std::shared_ptr<const FunctionSchema> function;
  std::vector<GivenArgument> given;
  std::vector<TensorSpec> specs;  // that the TensorArgs of `given` count in
  std::optional<OpSchema> made;
  std::vector<TensorSpec> operands;  // in the order of made->inputs
};

inline PlanOptions with_default_gap() {
  PlanOptions options;
  options.gap = kDefaultGap;
  return options;
}

// The options that the user gave. The topology of a plan gives the others.
struct OptionsObject {
  GraphReading reading;
  // With the defaults of the command line that do not depend on the topology.
  PlanOptions options = with_default_gap();
  std::vector<GivenOption> given;
  std::shared_ptr<const Plan> like;  // as PlanRequest::like
};

struct ShardingObject {
  std::shared_ptr<const OutputSharding> sharding;
  DeviceMesh mesh;
};

struct RedistributionObject {
  std::shared_ptr<const RedistributePlan> plan;
};

template <class Handle>
struct HandleOf;

#define SHARDPROP_HANDLE(handle, type, object, name)      \
  template <>                                             \
  struct HandleOf<handle> {                               \
    using Object = object;                                \
    static constexpr HandleType kType = HandleType::type; \
    static constexpr std::string_view kName = name;       \
  };
SHARDPROP_HANDLE(shardprop_error, kError, ErrorObject, "error")
SHARDPROP_HANDLE(shardprop_mesh, kMesh, DeviceMesh, "mesh")
SHARDPROP_HANDLE(shardprop_topology, kTopology, Topology, "topology")
SHARDPROP_HANDLE(shardprop_spec, kSpec, SpecObject, "spec")
SHARDPROP_HANDLE(shardprop_library, kLibrary, std::shared_ptr<const OpLibrary>,
                 "library")
SHARDPROP_HANDLE(shardprop_call, kCall, CallObject, "call")
SHARDPROP_HANDLE(shardprop_propagator, kPropagator, ShardingPropagator,
                 "propagator")
SHARDPROP_HANDLE(shardprop_cache, kCache, CachingPropagator, "cache")
SHARDPROP_HANDLE(shardprop_sharding, kSharding, ShardingObject, "sharding")
SHARDPROP_HANDLE(shardprop_redistribution, kRedistribution,
                 RedistributionObject, "redistribution")
SHARDPROP_HANDLE(shardprop_graph, kGraph, LoadedGraph, "graph")
SHARDPROP_HANDLE(shardprop_options, kOptions, OptionsObject, "options")
SHARDPROP_HANDLE(shardprop_stop, kStop, std::stop_source, "stop")
SHARDPROP_HANDLE(shardprop_plan, kPlan, Plan, "plan")
#undef SHARDPROP_HANDLE

}  // namespace shardprop::c

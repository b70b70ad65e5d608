// `PlanRequest` is a question to the planner as one value: a graph, a mesh, a
// topology, a library of operators and options. plan() answers it. The command
// line, the Python package and the C API all make this value, so that the same
// request has the same answer everywhere.
//
//   LoadedGraph loaded = load_graph("model.pt2", GraphReading()).value();
//   PlanRequest request{.graph = loaded.graph,
//                       .library = loaded.library,
//                       .mesh = planned_mesh("dp=2,tp=4").value(),
//                       .topology = default_topology(),
//                       .reading = loaded.reading};
//   const std::vector<GivenOption> given = {{"work_limit", "1000000", ""}};
//   request.options = plan_options(given, request.topology).value();
//   request.options.memory_limit;         // what a process can allocate, bytes
//   request.options.time_limit_seconds;   // 1e12: the work limit alone counts
//   Result<Plan> answer = shardprop::plan(request);
//   // A request may start from an earlier answer.
//   request.options.start_from = std::make_shared<const Plan>(*answer);
//   request.options.pins.push_back(Pin::parse("lm_head.weight=R,R").value());
//   shardprop::plan(request)->notes.back();  // an EarlierPlanNote
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/graph/graph.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/mesh/topology.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/plan/plan.h>
#include <shardprop/plan/plan_options.h>
#include <shardprop/plan/weigh_strategies.h>
#include <shardprop/request/graph_reading.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace shardprop {

// `PlanRequest` owns its parts or shares them; it can be copied and moved. Requests
// for other meshes, topologies or options may share the graph and the library.
struct PlanRequest {
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const OpLibrary> library;
  DeviceMesh mesh;
  Topology topology;
  // Options of plan_options(). Options that are empty depend on the graph: a graph
  // that trains has AdamW, and AdamW has mixed precision (plan/plan_options.h).
  PlanOptions options;
  // A plan of the same model whose parameters and buffers are laid out so here, too:
  // the pins of pins_like() join those of the options. Null if there is none.
  std::shared_ptr<const Plan> like;
  // Whether `graph` is the result of running().
  bool is_running = false;
  // The reading that the graph came from. The plan records it; it does not change
  // the answer.
  GraphReading reading;
};

// `PlannedGraph` is a plan with the graph that it runs.
struct PlannedGraph {
  std::shared_ptr<const Graph> graph;
  Plan plan;
};

// Returns the request with the graph as it runs: with the second runs that the
// options `execution` and `recompute` require (graph/recompute.h). A rule that the
// plan is to choose counts as none. Errors: those of running_graph().
Result<PlanRequest> running(PlanRequest request);
// The same, but a rule that the plan is to choose is the one that it chooses: the
// request is answered if its rule is open. Errors: those of plan_graph().
Result<PlanRequest> running_as_planned(PlanRequest request);
// Answers the request, with the graph that the plan runs. The nodes of that graph
// are those of the plan. Errors: those of plan(); kOutOfMemory.
Result<PlannedGraph> plan_graph(const PlanRequest& request);
// Returns the graph that a plan of `graph` runs: `graph` itself if it is the plan's
// own. Errors: those of options_of(plan) and of running_graph().
Result<std::shared_ptr<const Graph>> graph_of(
    const Plan& plan, std::shared_ptr<const Graph> graph,
    const OpLibrary& library);

// Answers the request. Precondition: `graph` and `library` are not null. An
// infeasible problem is not an error: Plan::status reports it. Errors: those of
// make_plan(), check_rules() and pins_like(); kInvalidArgument if an optimizer or
// micro-batches are requested for a graph that does not train.
Result<Plan> plan(const PlanRequest& request);

// Returns the cost of each strategy of one operator, and that of the best plan with
// it. Errors: those of weigh_strategies() of plan/weigh_strategies.h and of
// pins_like().
Result<WeighedNode> weigh_strategies(const PlanRequest& request, NodeId node);

// `GivenOption` is one option of the user as text. `name` is that of
// plan_option_table(). An error about the value has `place` as its location, or
// the name if `place` is empty.
struct GivenOption {
  std::string name;
  std::string text;
  std::string place;
};

// `SearchLimit` is the limit of a search if the user gives none.
enum class SearchLimit : std::uint8_t {
  kTime,  // that of RunControl, in seconds
  kWork,  // kDefaultWork, so that every machine makes the same plan
};

// Unit: table entries, as of RunControl::work_limit. One thread takes about 30 s
// for them (bench/results/warm_start.md).
inline constexpr std::uint64_t kDefaultWork = 20'000'000'000;

// Returns the options that the user gave. The others have defaults that depend on
// the topology and on each other:
//
// * memory: the bytes that a process can allocate on the device
// * recompute: auto, so that plan_graph() chooses the rule
// * overlap: the topology's
// * gap: kDefaultGap
// * time_limit: none if there is a work limit, so that every machine makes the
//   same plan; otherwise that of RunControl
// * work_limit: kDefaultWork if no limit is given and `limit` is kWork; otherwise
//   none
//
// A list, such as `pin`, may be given several times; of other options the last one
// counts. Errors: those of set_option().
Result<PlanOptions> plan_options(std::span<const GivenOption> given,
                                 const Topology& topology,
                                 SearchLimit limit = SearchLimit::kTime);

// Returns the end of the time limit that these options have, counted from `start`;
// empty if the time is unlimited. A limit that is not a number ends at `start`,
// and plan_options() refuses it.
std::optional<std::chrono::steady_clock::time_point> end_of_time_limit(
    std::span<const GivenOption> given,
    std::chrono::steady_clock::time_point start,
    SearchLimit limit = SearchLimit::kTime);

// Parses a mesh that the planner accepts. Errors: those of DeviceMesh::parse();
// kMeshTooManyDims if more than 5 dims are larger than 1.
Result<DeviceMesh> planned_mesh(std::string_view text);

}  // namespace shardprop

#include <shardprop/request/plan_request.h>

#include "base/budget.h"
#include "base/guard.h"
#include "base/try.h"
#include "request/recompute_choice.h"

#include <shardprop/graph/recompute.h>
#include <shardprop/plan/judge_plan.h>
#include <shardprop/plan/make_plan.h>
#include <shardprop/redistribute/planner.h>
#include <shardprop/request/like_plan.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

// Unit: seconds. Time limit beside a work limit.
constexpr double kUnlimitedSeconds = 1e12;

// Returns the defaults that depend on the other options.
PlanOptions options_beside(std::span<const GivenOption> given,
                           SearchLimit limit) {
  const auto is_given = [&](std::string_view name) {
    return std::any_of(
        given.begin(), given.end(),
        [&](const GivenOption& option) { return option.name == name; });
  };
  PlanOptions options;
  options.gap = kDefaultGap;
  options.recompute.reset();
  const bool by_work = limit == SearchLimit::kWork && !is_given("time_limit");
  if (by_work) options.work_limit = kDefaultWork;
  if (by_work || is_given("work_limit")) {
    options.time_limit_seconds = kUnlimitedSeconds;
  }
  return options;
}

Running running_of(const PlanOptions& options) {
  return {options.fusion == Fusion::kCompiler,
          options.recompute.value_or(Recompute{})};
}

Result<PlanOptions> options_of(const PlanRequest& request) {
  PlanOptions options = request.options;
  if (request.like) {
    SP_ASSIGN(std::vector<Pin> pins,
              pins_like(*request.like, *request.graph, request.mesh));
    options.pins.insert(options.pins.end(), pins.begin(), pins.end());
  }
  return options;
}

Result<PlannedGraph> planned(const PlanRequest& request) {
  SP_ASSIGN(const PlanOptions options, options_of(request));
  SP_ASSIGN(Plan made, make_plan(*request.graph, request.mesh, request.topology,
                                 *request.library, options));
  record(request.reading, made);
  return PlannedGraph{request.graph, std::move(made)};
}

bool chooses_rule(const PlanRequest& request) {
  return !request.is_running && !request.options.recompute &&
         request.options.memory_limit.has_value() &&
         request.graph->has_backward();
}

// Refuses options that count only in training. They would change nothing in a
// plan of a graph that does not train.
Result<void> check_training(const PlanRequest& request) {
  if (trains(*request.graph)) return {};
  const Optimizer optimizer =
      request.options.optimizer.value_or(Optimizer::kNone);
  std::string given;
  if (optimizer != Optimizer::kNone) {
    given = "--optimizer " + std::string(to_string(optimizer));
  } else if (request.options.accumulate > 1) {
    given = "--accumulate " + std::to_string(request.options.accumulate);
  }
  if (given.empty()) return {};
  return fail({ErrorCode::kInvalidArgument,
               "`" + given + "` is for training, and `" +
                   request.graph->name() + "` does not train",
               {},
               {"found no gradient of a parameter among its results"},
               "leave out the option, or export the training step"});
}

}  // namespace

Result<PlanRequest> running_as_planned(PlanRequest request) {
  if (chooses_rule(request)) {
    SP_ASSIGN(const PlannedGraph made, plan_graph(request));
    for (const auto& [name, text] : made.plan.options) {
      if (name != "recompute") continue;
      SP_ASSIGN(request.options.recompute, Recompute::parse(text));
    }
  }
  return running(std::move(request));
}

Result<PlanRequest> running(PlanRequest request) {
  if (request.is_running) return request;
  if (!request.options.recompute) request.options.recompute = Recompute{};
  SP_ASSIGN(request.graph,
            running_graph(std::move(request.graph), *request.library,
                          running_of(request.options)));
  request.is_running = true;
  return request;
}

Result<PlannedGraph> plan_graph(const PlanRequest& request) {
  return guarded([&]() -> Result<PlannedGraph> {
    SP_CHECK(check_rules(request.reading.rules, *request.graph));
    SP_CHECK(check_training(request));
    if (chooses_rule(request)) return plan_by_cheapest_rule(request);
    SP_ASSIGN(const PlanRequest own, running(request));
    return planned(own);
  });
}

Result<std::shared_ptr<const Graph>> graph_of(
    const Plan& plan, std::shared_ptr<const Graph> graph,
    const OpLibrary& library) {
  if (plan.graph_hash == hash_text(graph->hash())) return graph;
  SP_ASSIGN(const PlanOptions options, options_of(plan));
  Running running = running_of(options);
  // A plan that was saved before may count more blocks than there are.
  std::int64_t& count = running.recompute.first_blocks;
  if (count > 0) count = std::min(count, longest_row_of_blocks(*graph));
  return running_graph(std::move(graph), library, running);
}

Result<Plan> plan(const PlanRequest& request) {
  SP_ASSIGN(PlannedGraph made, plan_graph(request));
  return std::move(made.plan);
}

Result<WeighedNode> weigh_strategies(const PlanRequest& request, NodeId node) {
  SP_CHECK(check_training(request));
  SP_ASSIGN(const PlanOptions options, options_of(request));
  return weigh_strategies(*request.graph, node, request.mesh, request.topology,
                          *request.library, options);
}

Result<PlanOptions> plan_options(std::span<const GivenOption> given,
                                 const Topology& topology, SearchLimit limit) {
  PlanOptions options = options_beside(given, limit);
  options.memory_limit = topology.allocatable_bytes();
  options.overlap = topology.overlap_discount.value;
  for (const auto& [name, text, place] : given) {
    auto set = set_option(options, name, text);
    if (set) continue;
    Error error = std::move(set).error();
    if (error.location == name && !place.empty()) error.location = place;
    return fail(std::move(error));
  }
  return options;
}

std::optional<std::chrono::steady_clock::time_point> end_of_time_limit(
    std::span<const GivenOption> given,
    std::chrono::steady_clock::time_point start, SearchLimit limit) {
  PlanOptions options = options_beside(given, limit);
  for (const auto& [name, text, place] : given) {
    if (name == "time_limit" && !set_option(options, name, text)) return start;
  }
  return Budget({options.time_limit_seconds}, {}, start).deadline();
}

Result<DeviceMesh> planned_mesh(std::string_view text) {
  SP_ASSIGN(DeviceMesh mesh, DeviceMesh::parse(text));
  const auto dims =
      std::count_if(mesh.dims().begin(), mesh.dims().end(),
                    [](const MeshDim& dim) { return dim.size > 1; });
  if (dims > kMaxPlannedDims) {
    return fail(
        Error{ErrorCode::kMeshTooManyDims,
              "the mesh has " + std::to_string(dims) + " dims larger than 1",
              {},
              {},
              "plan for at most " + std::to_string(kMaxPlannedDims)});
  }
  return mesh;
}

}  // namespace shardprop

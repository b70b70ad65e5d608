#include <shardprop/request/plan_request.h>

#include "base/budget.h"
#include "base/try.h"

#include <shardprop/graph/recompute.h>
#include <shardprop/plan/make_plan.h>
#include <shardprop/redistribute/planner.h>
#include <shardprop/request/like_plan.h>

#include <algorithm>
#include <array>
#include <chrono>
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
  SP_ASSIGN(Plan made, make_plan(*request.graph, request.mesh,
                                 request.topology, *request.library, options));
  record(request.reading, made);
  return PlannedGraph{request.graph, std::move(made)};
}

// RuleChoice plans with one rule of recomputation after the other and takes the
// cheapest plan. If the memory limit does not bind, no rule is cheaper than none.
class RuleChoice {
 public:
  explicit RuleChoice(const PlanRequest& request) : request_(request) {}

  Result<PlannedGraph> run() {
    SP_ASSIGN(PlannedGraph best, plan_with({}, kRules.size() + 1));
    std::int64_t bound = best.plan.lower_bound_nanoseconds;
    if (is_free(best.plan)) return best;
    for (std::size_t r = 0; r < kRules.size(); ++r) {
      Result<PlannedGraph> other =
          plan_with({kRules[r], 0}, kRules.size() - r);
      // A graph without equal blocks has no such rule.
      if (!other) continue;
      bound = std::min(bound, other->plan.lower_bound_nanoseconds);
      if (is_better(other->plan, best.plan)) best = *std::move(other);
    }
    // The bound is that of the plans of all rules.
    best.plan.lower_bound_nanoseconds = bound;
    if (best.plan.status == PlanStatus::kOptimal &&
        bound < *best.plan.objective_nanoseconds) {
      best.plan.status = PlanStatus::kFeasible;
      best.plan.ran_out = RanOut::kGap;
    }
    return best;
  }

 private:
  static constexpr std::array kRules = {Recompute::Rule::kSelective,
                                        Recompute::Rule::kFull};
  // Permille of the limit. A plan that holds less is not cheaper without a limit.
  static constexpr std::int64_t kFree = 900;

  // The search for the plan must have ended, or a cheaper plan may need the memory.
  bool is_free(const Plan& plan) const {
    const bool has_ended = plan.status == PlanStatus::kOptimal ||
                           plan.ran_out == RanOut::kGap;
    return plan.has_plan() && has_ended &&
           plan.memory.peak_bytes <=
               *request_.options.memory_limit / 1000 * kFree;
  }

  static bool is_better(const Plan& a, const Plan& b) {
    if (!a.has_plan()) return false;
    return !b.has_plan() ||
           *a.objective_nanoseconds < *b.objective_nanoseconds;
  }

  // Each of the rules that are left gets an equal share of the rest.
  Result<PlannedGraph> plan_with(const Recompute& rule, std::size_t left) {
    PlanRequest own = request_;
    own.options.recompute = rule;
    const auto now = std::chrono::steady_clock::now();
    const double spent =
        std::chrono::duration<double>(now - request_.options.start.value_or(
                                                begun_))
            .count();
    own.options.start = now;
    own.options.time_limit_seconds =
        std::max(0.0, request_.options.time_limit_seconds - spent) /
        static_cast<double>(left);
    if (own.options.work_limit) {
      *own.options.work_limit /= kRules.size() + 1;
    }
    SP_ASSIGN(own, running(std::move(own)));
    return planned(own);
  }

  const PlanRequest& request_;
  std::chrono::steady_clock::time_point begun_ =
      std::chrono::steady_clock::now();
};

}  // namespace

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
  SP_CHECK(check_rules(request.reading.rules, *request.graph));
  const bool may_run_again = request.options.memory_limit.has_value() &&
                             request.graph->has_backward();
  if (!request.is_running && !request.options.recompute && may_run_again) {
    return RuleChoice(request).run();
  }
  SP_ASSIGN(const PlanRequest own, running(request));
  return planned(own);
}

Result<std::shared_ptr<const Graph>> graph_of(
    const Plan& plan, std::shared_ptr<const Graph> graph,
    const OpLibrary& library) {
  if (plan.graph_hash == hash_text(graph->hash())) return graph;
  PlanOptions options;
  options.fusion = Fusion::kNone;
  for (const auto& [name, text] : plan.options) {
    if (name == "execution" || name == "recompute") {
      SP_CHECK(set_option(options, name, text));
    }
  }
  return running_graph(std::move(graph), library, running_of(options));
}

Result<Plan> plan(const PlanRequest& request) {
  SP_ASSIGN(PlannedGraph made, plan_graph(request));
  return std::move(made.plan);
}

Result<WeighedNode> weigh_strategies(const PlanRequest& request, NodeId node) {
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

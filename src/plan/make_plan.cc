#include <shardprop/plan/make_plan.h>

#include "base/guard.h"
#include "base/try.h"
#include "plan/explain/assemble_plan.h"
#include "plan/explain/minimal_conflict.h"
#include "plan/problem/plan_budget.h"
#include "plan/search/compare_recipes.h"
#include "plan/search/procedures.h"
#include "plan/search/staged_search.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

// Returns one note on each part of the space that the search could not look at,
// and one if another part failed and there is a proof all the same.
std::vector<PlanNote> search_notes(const StagedResult& found) {
  std::vector<PlanNote> out;
  for (const PlanSolution::LeftOut& left : found.left_out) {
    PlanNote note = LeftOutNote{left.part, left.why.code, left.why.message};
    if (std::find(out.begin(), out.end(), note) == out.end()) {
      out.push_back(std::move(note));
    }
  }
  if (found.start) out.emplace_back(*found.start);
  const bool is_proven = found.ran_out == RanOut::kNothing;
  if (is_proven && found.failure && found.solution.assignment) {
    out.emplace_back(
        FailedPartNote{found.failure->code, found.failure->message});
  }
  return out;
}

// A plan file may hold no plan: that of an infeasible question, for example.
Result<void> check_start(const PlanOptions& options) {
  const Plan* start = options.start_from.get();
  if (start == nullptr || start->has_plan()) return {};
  return fail({ErrorCode::kPlanNotRunnable,
               "the plan to start from holds no plan",
               "--start-from",
               {"its status is `" + std::string(to_string(start->status)) +
                "`, expected `optimal` or `feasible`"},
               "start from another plan, or from none"});
}

// Returns whether a plan that costs less by more than the gap may need more memory
// than the limit.
bool does_limit_bind(const PlanSolution& solution, double gap) {
  const std::optional<std::int64_t>& bound = solution.bound_without_limit;
  if (!bound || !solution.assignment) return bound.has_value();
  const auto cost = static_cast<double>(solution.evaluation.objective);
  return static_cast<double>(*bound) < (1 - gap) * cost;
}

// A rule must not be stated for a graph that does not follow it.
Result<void> check_recompute(const Graph& graph, const PlanOptions& options) {
  const bool has_rule =
      options.recompute && options.recompute->rule != Recompute::Rule::kNone;
  const bool follows =
      std::any_of(graph.nodes().begin(), graph.nodes().end(),
                  [](const Node& node) { return node.runs_again(); });
  if (!has_rule || follows) return {};
  return fail(ErrorCode::kInvalidArgument,
              "no operator of the graph runs again, as --recompute " +
                  to_string(*options.recompute) + " requires",
              "leave out --recompute, or plan the graph of running_graph()");
}

Result<Plan> plan_for(const Graph& graph, const DeviceMesh& mesh,
                      const Topology& topology, const OpLibrary& library,
                      const PlanOptions& options) {
  SP_CHECK(check_start(options));
  SP_CHECK(check_recompute(graph, options));
  const Budget budget = budget_of(options);
  PlanOptions own = options;
  const auto tell = [&](PlanProgress progress) {
    progress.seconds = budget.seconds_spent();
    if (options.progress) options.progress(progress);
  };
  if (options.progress) own.progress = tell;
  SP_ASSIGN(StagedResult found,
            search_in_stages(graph, mesh, topology, library, own, budget));
  PlanSolution& solution = found.solution;
  std::vector<Pin> pins;
  if (solution.status == PlanStatus::kInfeasible) {
    SP_ASSIGN(pins,
              timed_run(found.procedures, PlanProcedure::kMinimalConflict, [&] {
                return minimal_conflict(graph, mesh, topology, library, own,
                                        budget, solution, found.left_out);
              }));
  }
  PlanProgress last{.phase = PlanProgress::Phase::kReport};
  if (solution.assignment) last.objective = solution.evaluation.objective;
  last.lower_bound = solution.lower_bound;
  tell(last);
  Plan plan = timed_run(found.procedures, PlanProcedure::kReport,
                        [&] { return assemble_plan(found.problem, solution); });
  if (plan.has_plan()) plan.space = found.space;
  plan.free_lower_bound_nanoseconds = found.free_lower_bound;
  plan.ran_out = found.ran_out;
  plan.conflict.pins = std::move(pins);
  plan.search = {does_limit_bind(found.solution, options.gap),
                 found.solution.work};
  if (options.compare) {
    std::vector<PlanSolution::LeftOut> left_out;
    SP_ASSIGN(
        plan.recipes,
        timed_run(found.procedures, PlanProcedure::kRecipeComparison, [&] {
          return compare_recipes(graph, mesh, topology, library, own, budget,
                                 found, left_out);
        }));
    std::move(left_out.begin(), left_out.end(),
              std::back_inserter(found.left_out));
  }
  for (PlanNote& note : search_notes(found)) {
    plan.notes.push_back(std::move(note));
  }
  // Procedures that did nothing are left out.
  std::erase_if(found.procedures,
                [](const Procedure& p) { return p.enabled && p.runs == 0; });
  plan.procedures = std::move(found.procedures);
  plan.solve_seconds = budget.seconds_spent();
  return plan;
}

}  // namespace

Result<Plan> make_plan(const Graph& graph, const DeviceMesh& mesh,
                       const Topology& topology, const OpLibrary& library,
                       const PlanOptions& options) {
  return guarded(
      [&] { return plan_for(graph, mesh, topology, library, options); });
}

}  // namespace shardprop

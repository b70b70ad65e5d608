#include <shardprop/plan/make_plan.h>

#include "base/guard.h"
#include "base/try.h"
#include "plan/explain/assemble_plan.h"
#include "plan/problem/plan_budget.h"
#include "plan/search/compare_recipes.h"
#include "plan/search/procedures.h"
#include "plan/search/solve_plan.h"
#include "plan/search/staged_search.h"
#include "plan/tuning.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

// ConflictMinimizer finds a minimal conflict of an infeasible problem. It drops
// the recipe, then each pin, and keeps it dropped if the rest is still
// infeasible. The remaining pins are the reported conflict.
class ConflictMinimizer {
 public:
  ConflictMinimizer(const Graph& graph, const DeviceMesh& mesh,
                    const Topology& topology, const OpLibrary& library,
                    PlanOptions options, const Budget& budget)
      : graph_(graph),
        mesh_(mesh),
        topology_(topology),
        library_(library),
        options_(std::move(options)),
        budget_(budget),
        per_question_(step_limits(budget, tuning::kConflictCheckSeconds,
                                  tuning::kConflictCheckWork)) {
    options_.progress = nullptr;
  }

  // `left_out` receives the parts that the checks left out.
  Result<void> run(PlanSolution& solution,
                   std::vector<PlanSolution::LeftOut>& left_out) {
    if (options_.recipe) {
      PlanOptions fewer = options_;
      fewer.recipe.reset();
      SP_CHECK(drop(std::move(fewer), solution, left_out));
      // The recipe is part of the reported conflict and is not needed for it.
      // So the conflict may not be minimal.
      unsure_ = unsure_ || !options_.recipe;
    }
    for (std::size_t i = 0; i < options_.pins.size() && !is_over_;) {
      PlanOptions fewer = options_;
      fewer.pins.erase(fewer.pins.begin() + static_cast<std::ptrdiff_t>(i));
      const std::size_t before = options_.pins.size();
      SP_CHECK(drop(std::move(fewer), solution, left_out));
      if (options_.pins.size() == before) ++i;
    }
    solution.conflict_irreducible = solution.conflict_irreducible && !unsure_;
    return {};
  }

  const std::vector<Pin>& pins() const { return options_.pins; }

 private:
  // Solves the problem with `fewer` options, and keeps these if it is
  // infeasible.
  Result<void> drop(PlanOptions fewer, PlanSolution& solution,
                    std::vector<PlanSolution::LeftOut>& left_out) {
    is_over_ = budget_.is_cut_off();
    unsure_ = unsure_ || is_over_;
    if (is_over_) return {};
    auto problem = PlanProblem::create(graph_, mesh_, topology_, library_,
                                       fewer, {{}, budget_});
    if (!problem) {
      if (problem.error().code != ErrorCode::kStopped) {
        return fail(std::move(problem).error());
      }
      is_over_ = unsure_ = true;
      return {};
    }
    PlanSolution without = solve_plan(*problem, budget_.within(per_question_));
    add_left_out("a check whether fewer requests conflict", without, left_out);
    if (without.status == PlanStatus::kInfeasible) {
      options_ = std::move(fewer);
      solution = std::move(without);
      return {};
    }
    unsure_ = unsure_ || !without.assignment;
    return {};
  }

  const Graph& graph_;
  const DeviceMesh& mesh_;
  const Topology& topology_;
  const OpLibrary& library_;
  PlanOptions options_;
  const Budget& budget_;
  BudgetLimits per_question_;
  bool unsure_ = false;   // a part that is left may be unneeded
  bool is_over_ = false;  // no time is left for more checks
};

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

Result<Plan> plan_for(const Graph& graph, const DeviceMesh& mesh,
                      const Topology& topology, const OpLibrary& library,
                      const PlanOptions& options) {
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
    ConflictMinimizer minimize_conflict(graph, mesh, topology, library, own,
                                        budget);
    SP_CHECK(timed_run(found.procedures, PlanProcedure::kMinimalConflict,
                       [&] {
                         return minimize_conflict.run(solution, found.left_out);
                       }));
    pins = minimize_conflict.pins();
  }
  PlanProgress last{.phase = PlanProgress::Phase::kReport};
  if (solution.assignment) last.objective = solution.evaluation.objective;
  last.lower_bound = solution.lower_bound;
  tell(last);
  Plan plan = timed_run(found.procedures, PlanProcedure::kReport,
                        [&] { return assemble_plan(found.problem, solution); });
  if (plan.has_plan()) plan.space = found.space;
  plan.ran_out = found.ran_out;
  plan.conflict.pins = std::move(pins);
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

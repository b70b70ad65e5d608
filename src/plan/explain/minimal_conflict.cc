#include "plan/explain/minimal_conflict.h"

#include "base/try.h"
#include "plan/search/solve_plan.h"
#include "plan/tuning.h"

#include <cstddef>
#include <utility>

namespace shardprop {
namespace {

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

}  // namespace

Result<std::vector<Pin>> minimal_conflict(
    const Graph& graph, const DeviceMesh& mesh, const Topology& topology,
    const OpLibrary& library, const PlanOptions& options, const Budget& budget,
    PlanSolution& solution, std::vector<PlanSolution::LeftOut>& left_out) {
  ConflictMinimizer minimizer(graph, mesh, topology, library, options, budget);
  SP_CHECK(minimizer.run(solution, left_out));
  return minimizer.pins();
}

}  // namespace shardprop

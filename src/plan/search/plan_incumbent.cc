#include "plan/search/plan_incumbent.h"

#include "base/saturating.h"
#include "plan/problem/equal_choices.h"
#include "plan/problem/plan_budget.h"

#include <shardprop/base/error.h>

#include <string>
#include <utility>

namespace shardprop {

void check_bound(std::int64_t lower_bound, std::int64_t objective) {
  if (lower_bound > objective) {
    throw InternalError("a lower bound of " + std::to_string(lower_bound) +
                        " ns is above the cost of a plan, " +
                        std::to_string(objective) + " ns");
  }
}

void PlanIncumbent::take(const PlanAssignment& plan,
                         const PlanEvaluation& figures) {
  keep(plan, figures);
  if (fits(figures)) {
    found_here_ =
        std::min(found_here_.value_or(figures.objective), figures.objective);
  }
}

void PlanIncumbent::take(const PlanAssignment& plan) {
  take(plan, evaluate(problem_, plan));
}

void PlanIncumbent::begin_with(const PlanAssignment& plan) {
  keep(plan, evaluate(problem_, plan));
}

bool PlanIncumbent::take_given(const PlanAssignment& plan) {
  const PlanEvaluation figures = evaluate(problem_, plan);
  const bool is_cheaper =
      !found() || figures.objective < out_.evaluation.objective;
  if (out_.status == PlanStatus::kInfeasible || !fits(figures) || !is_cheaper ||
      figures.objective < out_.lower_bound) {
    return false;
  }
  keep(plan, figures);
  out_.is_given = true;
  if (out_.start) out_.start->led_to_plan = true;
  return true;
}

// Without a plan that fits, the figures are those of the plan that comes
// nearest to the limit. Memory may run out in a copy, so both are copied before
// either is kept: a mix of two plans is none.
void PlanIncumbent::keep(const PlanAssignment& plan,
                         const PlanEvaluation& figures) {
  if (!figures.broken.empty()) throw InternalError(figures.broken);
  if (!problem_.equal_choices().are_alike(plan.choices)) {
    throw InternalError("a plan gives equal layers other choices");
  }
  if (fits(figures)) {
    if (!found() || figures.objective < out_.evaluation.objective) {
      PlanAssignment own_plan = plan;
      PlanEvaluation own_figures = figures;
      out_.assignment = std::move(own_plan);
      out_.evaluation = std::move(own_figures);
    }
  } else if (!found() && (out_.evaluation.peak_bytes == 0 ||
                          figures.peak_bytes < out_.evaluation.peak_bytes)) {
    PlanEvaluation own_figures = figures;
    out_.evaluation = std::move(own_figures);
  }
}

void PlanIncumbent::take_infeasible(
    const std::optional<solver::Conflict>& conflict) {
  out_.status = PlanStatus::kInfeasible;
  if (!conflict) return;
  for (const solver::Conflict::MemoryStep& step : conflict->memory) {
    out_.conflict.push_back({step.time, saturated(step.bytes_short)});
  }
  out_.conflict_irreducible = conflict->irreducible;
}

// Before any search, the bound is 0.
PlanIncumbent::Gains PlanIncumbent::gains() const {
  Gains out;
  if (found()) out.objective = out_.evaluation.objective;
  if (out_.lower_bound > 0) out.lower_bound = out_.lower_bound;
  return out;
}

void PlanIncumbent::credit(Procedure& record, const Gains& before) const {
  const Gains now = gains();
  if (now == before) return;
  ++record.improvements;
  if (!before.objective || !before.lower_bound) return;
  record.gap_closed =
      sat_add(record.gap_closed, (*before.objective - *now.objective) +
                                     (*now.lower_bound - *before.lower_bound));
}

PlanSolution PlanIncumbent::finish(std::optional<StoppedBy> ended_by) && {
  if (found()) {
    // Costs saturate at kMostNanoseconds. Equal saturated costs prove nothing,
    // so the bound stays below that value.
    out_.lower_bound = std::min(out_.lower_bound, kMostNanoseconds - 1);
    check_bound(out_.lower_bound, out_.evaluation.objective);
    out_.status = out_.lower_bound == out_.evaluation.objective
                      ? PlanStatus::kOptimal
                      : PlanStatus::kFeasible;
  }
  if (out_.status != PlanStatus::kOptimal &&
      out_.status != PlanStatus::kInfeasible) {
    out_.ran_out = is_done()  ? RanOut::kGap
                   : ended_by ? ran_out_of(*ended_by)
                              : RanOut::kAttempts;
  }
  return std::move(out_);
}

}  // namespace shardprop

#include "plan/search/best_stage.h"

#include "plan/search/plan_incumbent.h"

namespace shardprop {
namespace {

// Removes the proofs of a result whose space is not the named one.
void keep_no_proof(StagedResult& next) {
  if (next.space.is_named()) return;
  PlanStatus& status = next.solution.status;
  if (status == PlanStatus::kOptimal) status = PlanStatus::kFeasible;
  if (status == PlanStatus::kInfeasible) {
    status = PlanStatus::kUnknown;
    next.solution.conflict.clear();
  }
  if (!next.solution.assignment) next.solution.lower_bound = 0;
}

}  // namespace

void BestStage::take(StagedResult next) {
  keep_no_proof(next);
  if (!best_) {
    if (next.space.joined_dims != 0 && next.solution.assignment) {
      joined_bound_ = next.solution.lower_bound;
    }
    best_.emplace(std::move(next));
    return;
  }
  if (refutes_given(next)) {
    joined_bound_.reset();
    best_.emplace(std::move(next));
    return;
  }
  PlanSolution& best = best_->solution;
  const bool is_better =
      next.solution.assignment &&
      (!best.assignment ||
       next.solution.evaluation.objective <= best.evaluation.objective);
  const bool is_proof =
      next.solution.status == PlanStatus::kInfeasible && !best.assignment;
  if (is_better || is_proof || (!best.assignment && next.space.is_named())) {
    joined_bound_.reset();
    best_.emplace(std::move(next));
    return;
  }
  // The larger space contains the smaller one, so its bound holds for this
  // plan.
  if (!best.assignment || next.solution.lower_bound == 0) return;
  best_->space = next.space;
  best.lower_bound = next.solution.lower_bound;
  if (joined_bound_ && best.lower_bound > best.evaluation.objective) {
    // Buffers on joined mesh dims may be cached in two layouts, while the
    // larger space allows one. So the plan is outside that space, and the bound
    // of the joined mesh dims is the one that holds for both.
    best.lower_bound = *joined_bound_;
  }
  check_bound(best.lower_bound, best.evaluation.objective);
  const bool is_proven =
      next.space.is_named() && best.lower_bound == best.evaluation.objective;
  best.status = is_proven ? PlanStatus::kOptimal : PlanStatus::kFeasible;
}

bool BestStage::refutes_given(const StagedResult& next) const {
  const PlanSolution& best = best_->solution;
  if (!best.is_given || joined_bound_) return false;
  return next.solution.status == PlanStatus::kInfeasible ||
         next.solution.lower_bound > best.evaluation.objective;
}

void BestStage::take_member(StagedResult next) {
  const std::int64_t cost = next.solution.evaluation.objective;
  if (cost >= best_->solution.evaluation.objective) return;
  if (next.solution.is_given && cost < best_->solution.lower_bound) return;
  next.solution.lower_bound = best_->solution.lower_bound;
  check_bound(next.solution.lower_bound, cost);
  next.solution.status = PlanStatus::kFeasible;
  next.space = best_->space;
  best_.emplace(std::move(next));
}

}  // namespace shardprop

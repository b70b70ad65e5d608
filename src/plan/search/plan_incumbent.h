// PlanIncumbent is the best plan and the best lower bound of a search. It does
// not solve anything: a search gives it the plans and bounds that it finds.
#pragma once

#include "base/budget.h"
#include "plan/evaluate/plan_solution.h"
#include "plan/problem/plan_problem.h"

#include <shardprop/solver/solve.h>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace shardprop {

// Throws InternalError if the lower bound is above the cost of a plan.
void check_bound(std::int64_t lower_bound, std::int64_t objective);

class PlanIncumbent {
 public:
  // `problem` must outlive the object.
  explicit PlanIncumbent(const PlanProblem& problem,
                         std::optional<std::int64_t> known_cost = std::nullopt)
      : problem_(problem),
        limit_(problem.options().memory_limit),
        gap_(problem.options().gap),
        known_cost_(known_cost) {}

  // Keeps a plan of the problem if it fits and is the best so far. The figures
  // are those of evaluate().
  void take(const PlanAssignment& plan, const PlanEvaluation& figures);
  void take(const PlanAssignment& plan);
  // Like take(), for a plan that a search of a part of the problem found. It
  // does not count as found_here().
  void begin_with(const PlanAssignment& plan);
  // Like begin_with(), for a plan that a user gives, and only if it costs less than
  // the best one. Networks that count memory do not represent all plans that fit,
  // so a search may miss it. A plan that contradicts a proof is outside the space,
  // as an edited file may be, and is not kept. Returns whether the plan is kept.
  bool take_given(const PlanAssignment& plan);
  void raise_bound(std::int64_t bound) {
    out_.lower_bound = std::max(out_.lower_bound, bound);
  }
  // Records the proof that no plan fits.
  void take_infeasible(const std::optional<solver::Conflict>& conflict);

  // The best plan within the memory limit and the best bound so far.
  const PlanSolution& solution() const { return out_; }
  PlanSolution& solution() { return out_; }
  bool found() const { return out_.assignment.has_value(); }
  // The cost of that plan; null if there is none.
  std::optional<std::int64_t> cost() const {
    if (!found()) return std::nullopt;
    return out_.evaluation.objective;
  }
  // The cost of the best plan from networks of the full problem; null if there
  // is none. The plan of solution() may be another one, from begin_with().
  std::optional<std::int64_t> found_here() const { return found_here_; }
  bool fits(const PlanEvaluation& figures) const {
    return !limit_ || figures.peak_bytes <= *limit_;
  }
  bool is_proven() const {
    return found() && out_.lower_bound >= out_.evaluation.objective;
  }
  // Returns whether there is a plan, and it costs at least so much.
  bool costs_at_least(std::optional<std::int64_t> nanoseconds) const {
    return nanoseconds && found() && out_.evaluation.objective >= *nanoseconds;
  }
  // Returns whether the best plan is within the gap of the options, or no plan costs
  // less than the known one. A gap of 0 takes a proof.
  bool is_done() const { return found() && out_.lower_bound >= enough_bound(); }
  // Returns the least bound that ends the search. Precondition: found().
  std::int64_t enough_bound() const {
    const std::int64_t objective = out_.evaluation.objective;
    const std::int64_t enough =
        objective -
        static_cast<std::int64_t>(gap_ * static_cast<double>(objective));
    return std::min(enough, known_cost_.value_or(enough));
  }

  // Gains are the best cost and the best bound at one moment; null if unknown.
  struct Gains {
    std::optional<std::int64_t> objective;
    std::optional<std::int64_t> lower_bound;
    friend bool operator==(const Gains&, const Gains&) = default;
  };
  Gains gains() const;
  // Adds the gains of the incumbent since `before` to a record.
  void credit(Procedure& record, const Gains& before) const;

  // Returns the best plan, or the reason why there is none. `ended_by` is the
  // limit that ended the search; null if it ended by itself.
  PlanSolution finish(std::optional<StoppedBy> ended_by) &&;

 private:
  void keep(const PlanAssignment& plan, const PlanEvaluation& figures);

  const PlanProblem& problem_;
  std::optional<std::int64_t> limit_;
  double gap_;
  std::optional<std::int64_t> known_cost_;  // SearchScope::known_cost
  PlanSolution out_;
  std::optional<std::int64_t> found_here_;
};

}  // namespace shardprop

// RestrictedProblem is a plan problem with fewer choices than another one. It
// maps its assignments to assignments of that other problem.
//
//   Restriction first_choice_of_all = ...;
//   RestrictedProblem part(problem, first_choice_of_all);
//   PlanSolution solution = solve_plan(part.problem());
//   evaluate(problem, part.widened(*solution.assignment)).objective
//       == solution.evaluation.objective
//
// Variables that choose alike (problem/equal_choices.h) keep the choices of the
// first of them.
//
// A recipe is an example of a restriction (recipe_layouts.h). The restricted
// problem is a projection. Its buffers keep the layouts that a remaining choice
// produces or reads, and those between them. It reuses the known costs of the
// moves, so building it takes a small part of the time that building a problem
// takes.
#pragma once

#include "plan/evaluate/plan_assignment.h"
#include "plan/problem/constraints/restriction.h"
#include "plan/problem/plan_problem.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace shardprop {

class RestrictedProblem {
 public:
  // Precondition: `restriction` has a list for every variable of `problem`.
  // A search of the restricted problem ends within `gap`; null means that of
  // `problem`.
  RestrictedProblem(const PlanProblem& problem, Restriction restriction,
                    std::optional<double> gap = std::nullopt);
  // Restricts the problem to the plans in which equal layers choose alike.
  struct EqualLayers {};
  RestrictedProblem(const PlanProblem& problem, EqualLayers);

  const PlanProblem& problem() const { return part_; }
  // Returns the same assignment in the indices of the unrestricted problem. It
  // costs the same there, and takes as many bytes.
  PlanAssignment widened(PlanAssignment part) const;

 private:
  Restriction restriction_;
  // By buffer: the layouts of the unrestricted problem that are kept. Empty if
  // all are.
  std::vector<std::vector<BufferLayout>> states_;
  PlanProblem part_;
};

}  // namespace shardprop

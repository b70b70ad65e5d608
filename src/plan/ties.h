// Among plans that cost the same, the one that a person would take: less
// memory, then fewer moves, and equal layers laid out alike.
#pragma once

#include "plan/plan_problem.h"
#include "plan/plan_solution.h"

#include <shardprop/solver/solve.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace shardprop {

// Groups of two or more parameters, as variables, that have the same place in
// repeated layers: their names differ in components that are numbers
// (layers.0.w1, layers.1.w1), and their choices are the same.
std::vector<std::vector<PlanVariableId>> like_parameters(
    const PlanProblem& problem);

// Whether they lie alike.
bool lies_alike(const PlanProblem& problem, const PlanAssignment& plan);

// Replaces the assignment by one that costs no more where one is found. Solves
// the problem again, costs first and preferences second, under `how` each time,
// with hidden time at the prices given (NetworkOptions::hidden_prices).
// Where parameters of equal layers still lie differently, sets
// solution.alike_costs_more: what the best plan that lays them out alike costs
// beyond this one, if it was found.
// Precondition: there is an assignment.
void break_ties(const PlanProblem& problem,
                const std::vector<std::int64_t>& hidden_prices,
                const solver::SolveOptions& how, PlanSolution& solution);

// An assignment that keeps inputs and results small and fits the memory limit,
// where among those that cost no more than this solution, which need not fit,
// one is found.
std::optional<PlanAssignment> small_assignment(const PlanProblem& problem,
                                               const solver::SolveOptions& how,
                                               const PlanSolution& like);

}  // namespace shardprop

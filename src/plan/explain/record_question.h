// record_question() writes into a plan what was asked: the graph, the mesh, the
// topology, the options and the pins. It adds what follows from the question
// alone: operators without a strategy, guards, and the notes of the graph.
#pragma once

#include "plan/problem/plan_problem.h"

#include <shardprop/plan/plan.h>
#include <shardprop/plan/recipe.h>

#include <optional>

namespace shardprop {

void record_question(const PlanProblem& problem, Plan& plan);

// Returns the recipe of the options as it was applied, with its mesh dims.
std::optional<Recipe> applied_recipe(const PlanProblem& problem);

}  // namespace shardprop

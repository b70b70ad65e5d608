// The small parts of a plan problem in which a search finds its first plans.
//
//   for (const FirstSpace& space : first_spaces(problem)) {
//     RestrictedProblem part(problem, restriction_to(problem, space));
//     ... solve_plan(part.problem()) ...
//   }
//
// Each part is solved in a small share of the time that the whole problem
// takes. A search that begins with the plans of all parts never ends above one
// of them.
#pragma once

#include "plan/evaluate/plan_assignment.h"
#include "plan/problem/plan_problem.h"
#include "plan/search/parts/restricted_problem.h"

#include <shardprop/plan/recipe.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shardprop {

struct FirstSpace {
  std::optional<Recipe> recipe;  // null: mesh dims are joined
  std::uint32_t joined_dims = 0;
};

std::string to_string(const FirstSpace& space);  // "the recipe fsdp=dp"

// Returns the known recipes that are in the space of the problem, then the ways
// to join its mesh dims to one dim or to two. The list is empty if the problem
// follows a recipe itself, has a forced choice, or has only given choices.
std::vector<FirstSpace> first_spaces(const PlanProblem& problem);

Restriction restriction_to(const PlanProblem& problem, const FirstSpace& space);

// Returns the choices that treat each mesh dim of `joined_dims`
// (PlanSpace::joined_dims) as the mesh dim before it. They are the plans of the
// mesh in which these dims are one.
Restriction with_joined_dims(const PlanProblem& problem,
                             std::uint32_t joined_dims);

// Returns the choices in which every gradient is reduced in each micro-batch
// and accumulated in the layout of its optimizer's state. They need the least
// memory. The result is null if the problem has no choice in which a gradient
// is accumulated unreduced.
std::optional<Restriction> reduced_each_time(const PlanProblem& problem);

// Returns the choices that at least one of the plans makes. Precondition:
// `plans` is not empty.
Restriction choices_of_plans(const PlanProblem& problem,
                             std::span<const PlanAssignment> plans);

}  // namespace shardprop

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

#include "plan/plan_assignment.h"
#include "plan/plan_problem.h"
#include "plan/restricted_problem.h"

#include <shardprop/plan/recipe.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace shardprop {

struct FirstSpace {
  std::optional<Recipe> recipe;  // null: mesh dims are joined
  std::uint32_t joined_dims = 0;
};

// The known recipes that are in the space of the problem, then its mesh dims
// joined to one, or to two. Empty if the problem follows a recipe itself or has
// one choice forced.
std::vector<FirstSpace> first_spaces(const PlanProblem& problem);

Restriction restriction_to(const PlanProblem& problem, const FirstSpace& space);

// The choices that treat each mesh dim of `joined_dims` (PlanSpace::joined_dims) as
// the mesh dim before it: the plans of the mesh where these dims are one.
Restriction with_joined_dims(const PlanProblem& problem,
                             std::uint32_t joined_dims);

// The choices in which every gradient is reduced in each micro-batch, and
// accumulated as its optimizer's state is laid out: with the least memory. Null
// if the problem has no choice in which one is accumulated unreduced.
std::optional<Restriction> reduced_each_time(const PlanProblem& problem);

// The choices that one of the plans makes. Precondition: there is a plan.
Restriction choices_of_plans(const PlanProblem& problem,
                             std::span<const PlanAssignment> plans);

}  // namespace shardprop

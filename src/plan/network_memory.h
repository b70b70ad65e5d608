// The memory rows of a plan's network: what each choice and each held set takes,
// from slot to slot, counted from below (plan_network.h).
#pragma once

#include "plan/live_interval.h"

#include <shardprop/solver/problem.h>

#include <span>
#include <vector>

namespace shardprop {

// Whether the last use of a storage stands alone at the end of its life: it
// needs no stretch, what it takes goes with it. An input lives on, so that what
// is held beside it is told from it by a stretch where bytes count.
bool has_lone_use(const PlanStorage& storage, bool with_memory);

// Whether the gradient's bytes are counted with this parameter. Several
// parameters may share a gradient, and then one accumulator may serve them all.
bool counts_gradient(const PlanProblem& problem, PlanVariableId parameter,
                     std::size_t use);

// `variables` by PlanVariableId, `stretches` by storage.
void add_memory_rows(const PlanProblem& problem,
                     std::span<const solver::VariableId> variables,
                     std::span<const std::vector<Stretch>> stretches,
                     solver::ProblemBuilder& builder);

}  // namespace shardprop

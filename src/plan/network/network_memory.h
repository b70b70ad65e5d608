// memory_usages() lists the memory of a plan for its network: the bytes of each
// choice and of each set of cached layouts, by slots. The bytes are a lower
// bound (plan_network.h).
#pragma once

#include "plan/network/live_interval.h"
#include "plan/problem/plan_problem.h"

#include <shardprop/solver/problem.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shardprop {

// Returns whether the last use of a buffer is the only use of the last segment.
// This use needs no live interval: the copy that it reads is freed with it. If
// the network counts memory, inputs are the exception. They outlive the use, so
// a layout that is cached next to them needs an interval.
bool has_lone_use(const PlanBuffer& buffer, bool with_memory);

// Returns whether the gradient's bytes are counted with this parameter. Several
// parameters may share a gradient, and then one accumulator may serve them all.
bool counts_gradient(const PlanProblem& problem, PlanVariableId parameter,
                     std::size_t use);

// MemoryUsage is the bytes that a variable of the network uses in a range of
// slots.
struct MemoryUsage {
  solver::VariableId variable;
  solver::Interval when;
  std::vector<std::int64_t> bytes;  // by choice
};

// `variables` is indexed by PlanVariableId, `live_intervals` by buffer.
std::vector<MemoryUsage> memory_usages(
    const PlanProblem& problem, std::span<const solver::VariableId> variables,
    std::span<const std::vector<LiveInterval>> live_intervals);

}  // namespace shardprop

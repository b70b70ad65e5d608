// Returns the totals of a plan: time, memory, bytes sent.
#pragma once

#include <shardprop/plan/plan.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

// The compute time of one kind of work.
struct ComputeShare {
  std::string_view name;  // of an OpKind, "optimizer" or "kernel boundaries"
  std::int64_t nanoseconds = 0;
};

// They add up to the summary's compute; kinds that take nothing are left out.
std::vector<ComputeShare> compute_by_kind(const Plan& plan);

// One row each. Precondition: has_plan().
std::string plan_totals(const Plan& plan);

}  // namespace shardprop

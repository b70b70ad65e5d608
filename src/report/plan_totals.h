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

// Returns shares that sum to the compute of the summary. Kinds without time are
// omitted.
std::vector<ComputeShare> compute_by_kind(const Plan& plan);

// Returns one row per total. Precondition: has_plan().
std::string plan_totals(const Plan& plan);

}  // namespace shardprop

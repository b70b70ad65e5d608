// `PlanRecipe` is the best plan that a search found under one recipe:
//
//   {"megatron=tp", PlanStatus::kOptimal, 1'420'000, 3'221'225'472}
//
// costs 1.42 ms a step and takes 3 GiB on a rank.
#pragma once

#include <shardprop/solver/solve.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shardprop {

// `PlanStatus` refers to the plan over the named space:
//   kOptimal      no assignment costs less
//   kFeasible     within `gap` of the optimum
//   kInfeasible   proven
//   kUnknown      neither a plan nor a proof was found
using PlanStatus = solver::Status;
std::optional<PlanStatus> parse_plan_status(std::string_view text);

struct PlanRecipe {
  std::string name;  // "fsdp=dp,megatron=tp"
  PlanStatus status = PlanStatus::kUnknown;
  std::optional<std::int64_t> objective_nanoseconds;  // empty without a plan
  std::int64_t peak_bytes = 0;
  friend bool operator==(const PlanRecipe&, const PlanRecipe&) = default;
};

}  // namespace shardprop

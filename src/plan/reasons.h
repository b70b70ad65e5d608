// Why a copy is there, and what going without it would cost.
#pragma once

#include "plan/copies.h"
#include "plan/local_prices.h"

#include <shardprop/plan/plan_problem.h>

#include <cstdint>
#include <optional>
#include <string>

namespace shardprop {

struct CopyReason {
  std::string text;
  std::optional<std::int64_t> alternative_nanoseconds;
};

// `prices` watches `choices`.
CopyReason reason_of(const PlanProblem& problem,
                     std::span<const std::uint32_t> choices,
                     const NeededCopy& copy, LocalPrices& prices);

}  // namespace shardprop

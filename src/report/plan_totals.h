// What a plan takes in all: time, memory, bytes sent.
#pragma once

#include <shardprop/plan/plan.h>

#include <string>

namespace shardprop {

// One row each. Precondition: has_plan().
std::string plan_totals(const Plan& plan);

}  // namespace shardprop

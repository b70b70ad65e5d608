// Texts about work that a plan does once per step of several micro-batches. The
// times in a plan are those of one micro-batch, with its share of this work;
// the bytes are those of the step.
#pragma once

#include <shardprop/plan/plan.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shardprop {

// Returns the value of an option; empty if the plan was made without it.
std::string option_of(const Plan& plan, std::string_view name);

// Returns the time of a whole step: all micro-batches and the updates. Empty
// without a plan.
std::optional<std::int64_t> step_nanoseconds(const Plan& plan);

// Returns "times are those of one of 8 micro-batches, ..."; empty if a step is
// one micro-batch.
std::string micro_batches(const Plan& plan);
// Returns "once in 8 micro-batches", for work that is done once per step.
std::string once_in(const Plan& plan);

}  // namespace shardprop

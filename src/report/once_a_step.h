// What a plan does once a step of several micro-batches, whose times are the
// share of one of them and whose bytes are not shared out.
#pragma once

#include <shardprop/plan/plan.h>

#include <string>
#include <string_view>

namespace shardprop {

// The value of an option; empty where the plan was made without it.
std::string option_of(const Plan& plan, std::string_view name);

// "times are those of one of 8 micro-batches, ..."; empty where a step is one.
std::string micro_batches(const Plan& plan);
// "once in 8 micro-batches", of what is done once a step.
std::string once_in(const Plan& plan);

}  // namespace shardprop

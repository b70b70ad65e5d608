// What a plan does once a step of several micro-batches, whose times are the
// share of one of them and whose bytes are not shared out.
#pragma once

#include <shardprop/plan/plan.h>

#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

// The value of an option; empty where the plan was made without it.
std::string option_of(const Plan& plan, std::string_view name);

// By copy: reductions of gradients that are added up first, and gathers behind
// the optimizer's step. None where a step is one micro-batch.
std::vector<bool> copies_once_a_step(const Plan& plan);

// "times are those of one of 8 micro-batches, ..."; empty where a step is one.
std::string micro_batches(const Plan& plan);
// "once in 8 micro-batches", of what is done once a step.
std::string once_in(const Plan& plan);

}  // namespace shardprop

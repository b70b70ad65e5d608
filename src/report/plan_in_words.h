// What a plan is, in sentences: what each mesh dim does.
#pragma once

#include <shardprop/plan/plan.h>

#include <string>
#include <vector>

namespace shardprop {

// A line for each mesh dim larger than 1, and what to know besides.
//
//   dp=8: data parallel; parameters in shards (as FSDP does)
//   tp=8: tensor parallel; by tokens between products (sequence parallel)
std::vector<std::string> plan_in_words(const Plan& plan);

// The first lines: how good the plan is, and how that is known.
std::string verdict(const Plan& plan);
// ", as the file says": what stands behind a status that was not proven here.
std::string as_said(const Plan& plan);

// "all replicated": the part of the named space that was searched.
// Precondition: the plan's space is not the named one.
std::string space_in_words(const Plan& plan);
// "time ran out": why there is no plan.
std::string_view why_none(RanOut what);

}  // namespace shardprop

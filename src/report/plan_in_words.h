// The sentences at the top of a plan's text: the verdict, and the use of each
// mesh dim.
#pragma once

#include <shardprop/plan/plan.h>

#include <string>
#include <vector>

namespace shardprop {

// One line for each mesh dim larger than 1, then the limits of small operators
// and the update of the parameters.
//
//   dp=8: data parallel; parameters sharded (as FSDP does)
//   tp=8: tensor parallel; tokens sharded between matmuls (sequence parallel)
std::vector<std::string> plan_in_words(const Plan& plan);

// The first lines: how good the plan is, and how that is known.
std::string verdict(const Plan& plan);
// ", as the file says" if the status was read from a file and not proven.
std::string as_said(const Plan& plan);

// "all replicated": the part of the named space that was searched.
// Precondition: the plan's space is not the named one.
std::string space_in_words(const Plan& plan);
// "time ran out": why there is no plan.
std::string_view why_none(RanOut what);

}  // namespace shardprop

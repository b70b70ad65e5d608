// Writes the sentences at the top of a plan's text: the verdict, and the use of
// each mesh dim.
#pragma once

#include <shardprop/plan/plan.h>

#include <string>
#include <vector>

namespace shardprop {

// Returns one line for each mesh dim larger than 1, then the limits of small
// operators and the update of the parameters.
//
//   dp=8: data parallel; parameters sharded (as FSDP does)
//   tp=8: tensor parallel; tokens sharded between matmuls (sequence parallel)
std::vector<std::string> plan_in_words(const Plan& plan);

// Returns the first lines: the quality of the plan, and its proof.
std::string verdict(const Plan& plan);
// Returns ", as the file says" if the status was read from a file and not
// proven.
std::string as_said(const Plan& plan);

// Returns "all replicated": the part of the named space that was searched.
// Precondition: the plan's space is not the named one.
std::string space_in_words(const Plan& plan);
// Returns "time ran out": the reason why there is no plan.
std::string_view why_none(RanOut what);

}  // namespace shardprop

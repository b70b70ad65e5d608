// This header prints the typed explanations of a plan as sentences for people.
// The text may change from release to release; programs read the types.
//
//   reasons_in_words(plan)[0]
//   // "`mm_1` (model.py:53) reads it as R,S(1); as S(0),S(1) the plan would
//   // cost 412.0 us more"
#pragma once

#include <shardprop/plan/plan.h>

#include <string>
#include <vector>

namespace shardprop {

// Returns the reason of each copy, in the order of plan.copies.
std::vector<std::string> reasons_in_words(const Plan& plan);

std::string note_in_words(const PlanNote& note);

}  // namespace shardprop

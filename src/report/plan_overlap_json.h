// `write_overlap()` writes the overlap windows of a plan.
#pragma once

#include "io/json_text.h"

#include <shardprop/plan/plan.h>

namespace shardprop {

// Writes the members `overlap_multipliers` and `overlap_windows` of a plan file. A
// member is left out if the plan has none.
void write_overlap(JsonText& json, const Plan& plan);

}  // namespace shardprop

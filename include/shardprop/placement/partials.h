// How the terms of several mesh dims go together: sum beside average is one
// sum, scaled once; other reduce ops mix with their own kind only.
//
//   P(sum) beside P(avg) over tp=4:  one sum, a quarter of it
#pragma once

#include <shardprop/placement/placement.h>

namespace shardprop {

// Whether two partials may stand in one layout. Precondition: both are partial.
bool partials_mix(Placement a, Placement b);

// What the terms of both mesh dims are combined by in one collective.
// Precondition: partials_mix(a, b).
Placement combined_partial(Placement a, Placement b);

}  // namespace shardprop

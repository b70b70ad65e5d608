// `partials_mix` and `combined_partial` define how partials of several mesh
// dims combine. A sum and an average become one sum, scaled once; other reduce
// ops mix only with their own kind. The reduction dtypes must be equal.
//
//   P(sum) with P(avg) over tp=4:  one sum, divided by 4
#pragma once

#include <shardprop/placement/placement.h>

namespace shardprop {

// Returns whether two partials may be in one layout. Precondition: both are
// partial.
bool partials_mix(Placement a, Placement b);

// Returns the partial whose reduce op combines both mesh dims in one
// collective; the caller scales for averages. Precondition: partials_mix(a, b).
Placement combined_partial(Placement a, Placement b);

}  // namespace shardprop

// calls_itself() finds programs that call their own operator, directly or through
// the programs of other operators. Their index space would have no end.
#pragma once

#include <shardprop/ops/op_library.h>

namespace shardprop {

// Returns true for a row of aten.exp with the program "return exp(self)". Programs of
// ranks are not traced further, and are never part of a cycle.
bool calls_itself(const OpLibrary& library, const OpRow& row);

}  // namespace shardprop

// Tests the conditions of an alternative on a call.
#pragma once

#include <shardprop/ops/notation.h>
#include <shardprop/ops/op_schema.h>

#include <vector>

namespace shardprop {

// Returns whether all conditions hold.
bool hold(const std::vector<Condition>& conditions, const OpSchema& op);

}  // namespace shardprop

// Returns the index space of an operator that has no definition, or whose
// definition rejects the call. Every dim is unsharded on every rank.
#pragma once

#include <shardprop/ops/index_space.h>
#include <shardprop/ops/op_schema.h>

namespace shardprop {

IndexSpace unsharded_space(const OpSchema& op);

}  // namespace shardprop

// unsharded_space(): of an operator that has no definition, or whose call its
// definition does not take: every dim is whole on every rank.
#pragma once

#include <shardprop/ops/index_space.h>
#include <shardprop/ops/op_schema.h>

namespace shardprop {

IndexSpace unsharded_space(const OpSchema& op);

}  // namespace shardprop

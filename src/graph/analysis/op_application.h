// Equality and hash of applied operators. Nodes of repeated layers that are the
// same application share their choices.
#pragma once

#include <shardprop/ops/op_schema.h>

#include <cstddef>

namespace shardprop {

std::size_t hash_application(const OpSchema& op);
bool same_application(const OpSchema& a, const OpSchema& b);

}  // namespace shardprop

// Names an operand by the declared argument that holds it.
//   operand_name(mm, 1) == "mat2"   operand_name(cat, 1) == "tensors[1]"
#pragma once

#include <shardprop/ops/op_schema.h>

#include <cstddef>
#include <string>

namespace shardprop {

// Returns an empty string if no argument holds the operand.
std::string operand_name(const OpSchema& op, std::size_t operand);

}  // namespace shardprop

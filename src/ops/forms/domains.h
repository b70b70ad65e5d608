// Sizes that integers in an argument stay below: of what they are places in.
#pragma once

#include <shardprop/ops/op_schema.h>

#include <cstddef>
#include <cstdint>

namespace shardprop {

// Of the dim of self that `dim` names; 1 where self has none.
std::int64_t size_along_dim(const OpSchema& op, std::size_t operand);
// Of the dim of self at whose place the operand stands in the list `indices`.
std::int64_t size_of_indexed_dim(const OpSchema& op, std::size_t operand);
// Of all elements of self.
std::int64_t size_of_self(const OpSchema& op, std::size_t operand);
// Of the rows of `weight`.
std::int64_t rows_of_weight(const OpSchema& op, std::size_t operand);
// Of the classes of self: its second dim, or its only one.
std::int64_t classes_of_self(const OpSchema& op, std::size_t operand);

}  // namespace shardprop

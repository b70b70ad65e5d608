// Exclusive upper bounds of integers in an argument: the size of the tensor or
// dim that they index.
#pragma once

#include <shardprop/ops/op_schema.h>

#include <cstddef>
#include <cstdint>

namespace shardprop {

// Returns the size of the dim of self that `dim` names; 1 if self has no such
// dim.
std::int64_t size_along_dim(const OpSchema& op, std::size_t operand);
// Returns the size of the dim of self at the operand's position in the list
// `indices`.
std::int64_t size_of_indexed_dim(const OpSchema& op, std::size_t operand);
// Returns the number of elements of self.
std::int64_t size_of_self(const OpSchema& op, std::size_t operand);
// Returns the number of rows of `weight`.
std::int64_t rows_of_weight(const OpSchema& op, std::size_t operand);
// Returns the number of classes of self: the size of its second dim, or of its
// only one.
std::int64_t classes_of_self(const OpSchema& op, std::size_t operand);

}  // namespace shardprop

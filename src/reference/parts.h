// Parts of a tensor along one dim or two, which see the same memory.
#pragma once

#include <shardprop/reference/tensor.h>

#include <cstdint>

namespace shardprop::reference {

// `length` elements from `start`, every `step`-th. Precondition: they lie within
// the dim.
Tensor part_of(const Tensor& whole, int dim, std::int64_t start,
               std::int64_t length, std::int64_t step = 1);
// One element, without the dim.
Tensor element_of(const Tensor& whole, int dim, std::int64_t at);
// The diagonal of dims a and b, `offset` places to the right of the main one, as
// a last dim. Precondition: `shape` is that of the result.
Tensor diagonal_of(const Tensor& whole, int a, int b, std::int64_t offset,
                   Dims shape);

}  // namespace shardprop::reference

// Returns views of parts of a tensor along one or two dims.
#pragma once

#include <shardprop/reference/tensor.h>

#include <cstdint>

namespace shardprop::reference {

// Returns `length` elements from `start`, every `step`-th. Precondition: they
// are within the dim.
Tensor part_of(const Tensor& whole, int dim, std::int64_t start,
               std::int64_t length, std::int64_t step = 1);
// Returns one element and removes the dim.
Tensor element_of(const Tensor& whole, int dim, std::int64_t at);
// Returns the diagonal of dims a and b, `offset` positions to the right of the
// main one, as a new last dim. Precondition: `shape` is the shape of the
// result.
Tensor diagonal_of(const Tensor& whole, int a, int b, std::int64_t offset,
                   Dims shape);

}  // namespace shardprop::reference

// Parts of a tensor along one dim, which see the same memory.
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

}  // namespace shardprop::reference

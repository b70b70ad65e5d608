// The cost of a product of several tensors, which is computed two tensors at a
// time.
#pragma once

#include <shardprop/ops/index_space.h>

#include <cstddef>
#include <vector>

namespace shardprop {

// Returns the inputs that hold a factor which the output lacks: the operands of
// the product. A bias, or an operand that only scales a gradient, holds no such
// factor.
std::vector<std::size_t> summed_inputs(const IndexSpace& space,
                                       const Operand& output);

// Returns how many pairs of elements are multiplied if the inputs are
// multiplied two at a time in the best order. Every factor has the given size.
// More than ten inputs are multiplied in their given order.
//
//   ij,jk,kl->il {i=2,j=100,k=100,l=2}   2*100*100 + 2*100*2 = 20400
double least_products(const IndexSpace& space,
                      const std::vector<double>& sizes);

}  // namespace shardprop

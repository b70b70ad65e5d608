// Products of several tensors are made two at a time.
#pragma once

#include <shardprop/ops/index_space.h>

#include <cstddef>
#include <vector>

namespace shardprop {

// The inputs that hold a factor which the output lacks: what is multiplied. A
// bias, or what stands beside a gradient, holds none.
std::vector<std::size_t> summed_inputs(const IndexSpace& space,
                                       const Operand& output);

// How many pairs of elements are multiplied where the inputs are multiplied two
// at a time, in the best order; every factor has the size given. Of more than
// ten inputs, in the order in which they stand.
//
//   ij,jk,kl->il {i=2,j=100,k=100,l=2}   2*100*100 + 2*100*2 = 20400
double least_products(const IndexSpace& space,
                      const std::vector<double>& sizes);

}  // namespace shardprop

// An order in which variables are eliminated so that few are known at a time:
// the front, those that have been met and are not gone yet.
//
//   0 - 1 - 2 - 3      0, 1, 2, 3: at most two at a time
//                      0, 2, 1, 3: three
//
// Elimination in such an order has one table, over the front; elimination in
// any order (elimination_order.h) has many, each smaller, but a bound from
// below on all that is not in a table prunes one table best.
#pragma once

#include <cstddef>
#include <vector>

namespace shardprop::solver {

// `neighbours`: by variable. `weight`: logarithms of the choices of a variable;
// what is kept small is the sum over all steps of e to the sum over the front.
// `width`: orders looked at side by side (a beam search), at least 1.
// Deterministic.
std::vector<int> front_order(const std::vector<std::vector<int>>& neighbours,
                             const std::vector<double>& weight,
                             std::size_t width);

// The order in which the variables of an elimination order are met: each when
// the first of itself and its neighbours is eliminated, itself first.
std::vector<int> order_met(const std::vector<std::vector<int>>& neighbours,
                           const std::vector<int>& eliminated);

}  // namespace shardprop::solver

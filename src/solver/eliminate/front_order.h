// Finds an order of elimination with a small front. The front is the set of
// variables that are met and not yet eliminated.
//
//   0 - 1 - 2 - 3      0, 1, 2, 3: at most two at a time
//                      0, 2, 1, 3: three
//
// Elimination in this order has one table, over the front. Elimination in any
// order (elimination_order.h) has many smaller tables. A lower bound on the
// cost outside a table prunes a single table best.
#pragma once

#include <cstddef>
#include <vector>

namespace shardprop::solver {

// `neighbours` is by variable. `weight` is the logarithm of the choices of a
// variable. The order minimises the sum, over all steps, of e to the total
// weight of the front. `width` is the number of orders in the beam search, at
// least 1. The result is deterministic.
std::vector<int> front_order(const std::vector<std::vector<int>>& neighbours,
                             const std::vector<double>& weight,
                             std::size_t width);

// Returns the order in which the variables of an elimination order are met. A
// variable is met when it or its first neighbour is eliminated; the eliminated
// variable comes first.
std::vector<int> order_met(const std::vector<std::vector<int>>& neighbours,
                           const std::vector<int>& eliminated);

}  // namespace shardprop::solver

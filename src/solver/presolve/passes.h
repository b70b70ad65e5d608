// These reductions keep the optimum (of cost under the memory rows) and return
// whether they changed anything. They run in turn until none of them changes
// the network.
#pragma once

#include "solver/model/network.h"

#include <map>
#include <vector>

namespace shardprop::solver {

// Merges edges between the same two variables.
bool merge_parallel_edges(Network& network);

// Removes choices without support on an edge. Also removes choices that
// overflow a row even if every other variable uses its least.
bool arc_consistency(Network& network);

// If each choice of x allows only one choice of y, y becomes part of x.
bool contract_determined(Network& network);

// Moves edges whose table is f(a) + g(b) into the unary costs.
bool drop_separable_edges(Network& network);

// Removes a choice if another one never costs more, for any choices of the
// neighbours, and uses no more bytes in any row.
bool dominance(Network& network);

// Removes variables of degree 0, 1 and 2. This is exact if their bytes cannot
// matter. At degree 0 and 1, it is also exact if the best choice is the same at
// every price of memory.
bool eliminate_low_degree(Network& network);

// Makes `y` part of `x`: choice c of x implies choice map[c] of y. It absorbs
// every edge between the two.
void absorb(Network& network, int x, int y, const std::vector<int>& map);

// Marginal is the result of eliminating a variable, by choices of its
// neighbours.
struct Marginal {
  std::vector<double> best;
  std::vector<int> choice;
};
// The key has the number of choices, their costs, and the tables.
using EliminationMemo = std::map<std::vector<double>, Marginal>;

// Removes `v`, which has at most two neighbours, by minimising over its
// choices. Its bytes must not matter. Returns false and does nothing if the
// resulting table would have more than `cap` entries. `memo`, if given, caches
// the results of variables with equal costs and tables; repeated layers have
// many.
bool eliminate_exactly(Network& network, int v, std::size_t cap,
                       EliminationMemo* memo = nullptr);

}  // namespace shardprop::solver

// The reductions: each keeps the optimum (of cost under the memory rows) and
// says whether it changed anything. They are run in turns until none does.
#pragma once

#include "solver/model/network.h"

#include <map>
#include <vector>

namespace shardprop::solver {

// Edges between the same two variables become one.
bool merge_parallel_edges(Network& network);

// Removes choices without support on an edge, and choices that overflow a row
// even when every other variable uses least.
bool arc_consistency(Network& network);

// Where each choice of x allows just one of y, y becomes part of x.
bool contract_determined(Network& network);

// Edges whose table is f(a) + g(b) move into the unary costs.
bool drop_separable_edges(Network& network);

// Removes a choice when another one costs no more whatever the neighbours do
// and uses no more bytes in any row.
bool dominance(Network& network);

// Takes out variables of degree 0, 1 and 2: exactly where their bytes cannot
// matter, and at degree 0 and 1 also where the best choice is the same at every
// price of memory.
bool eliminate_low_degree(Network& network);

// Makes `y` part of `x`: choice c of x implies choice map[c] of y. Every edge
// between the two is absorbed.
void absorb(Network& network, int x, int y, const std::vector<int>& map);

// What is left of a variable that is gone: by choices of its neighbours.
struct Marginal {
  std::vector<double> best;
  std::vector<int> choice;
};
// By the number of choices, their costs, and the tables.
using EliminationMemo = std::map<std::vector<double>, Marginal>;

// Takes out `v`, which has at most two neighbours, by minimising over its
// choices; its bytes must not matter. False, and nothing done, when the
// resulting table would hold more than `cap` entries.
// `memo`, if given, remembers what came of variables with equal costs and
// tables: repeated layers have many.
bool eliminate_exactly(Network& network, int v, std::size_t cap,
                       EliminationMemo* memo = nullptr);

}  // namespace shardprop::solver

// ShiftedCosts moves costs and changes no sum.
#include "solver/bound/shifted_costs.h"

#include "solver/random_problem.h"
#include "support/property.h"

#include "solver/bound/dual_bound.h"
#include "solver/model/network.h"
#include "solver/presolve/core.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace shardprop::solver {
namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// The cost of an assignment of the core, in quanta.
std::int64_t core_cost(const Core& core, const std::vector<int>& choices,
                       double quantum) {
  double sum = 0;
  for (int v = 0; v < core.size(); ++v) sum += core.cost(v)[choices[at(v)]];
  for (const CoreEdge& edge : core.edges) {
    sum += edge.table[choices[at(edge.a)] * core.choices(edge.b) +
                      choices[at(edge.b)]];
  }
  return static_cast<std::int64_t>(sum / quantum);
}

std::int64_t shifted_cost(const Core& core, const ShiftedCosts& shifted,
                          const std::vector<int>& choices) {
  std::int64_t sum = shifted.least();
  for (int v = 0; v < core.size(); ++v) {
    sum += shifted.variable(v)[at(choices[at(v)])];
  }
  for (std::size_t e = 0; e < core.edges.size(); ++e) {
    const CoreEdge& edge = core.edges[e];
    sum += shifted.edge(static_cast<int>(e))[at(
        choices[at(edge.a)] * core.choices(edge.b) + choices[at(edge.b)])];
  }
  return sum;
}

void check_shifted(const Core& core, const DualBound& dual,
                   const std::vector<int>& met) {
  const ShiftedCosts shifted(core, dual, met);
  for (std::size_t e = 0; e < core.edges.size(); ++e) {
    for (const std::int64_t cost : shifted.edge(static_cast<int>(e))) {
      CHECK(cost >= 0);
    }
  }
  for (std::size_t i = 0; i < met.size(); ++i) {
    const int v = met[i];
    const auto arcs = core.arcs(v);
    const bool has_earlier =
        std::any_of(arcs.begin(), arcs.end(), [&](const Arc& arc) {
          return std::find(
                     met.begin(), met.begin() + static_cast<std::ptrdiff_t>(i),
                     arc.other) != met.begin() + static_cast<std::ptrdiff_t>(i);
        });
    for (const std::int64_t cost : shifted.variable(v)) {
      CHECK(cost >= 0);
      if (has_earlier) CHECK(cost == 0);
    }
  }
  std::vector<int> choices(at(core.size()), 0);
  while (true) {
    CHECK(shifted_cost(core, shifted, choices) ==
          core_cost(core, choices, dual.quantum()));
    int v = 0;
    while (v < core.size() && ++choices[at(v)] == core.choices(v)) {
      choices[at(v++)] = 0;
    }
    if (v == core.size()) return;
  }
}

TEST_CASE("ShiftedCosts keeps the cost of every assignment") {
  Rng rng(shardprop::testing::property_seed() + 70);
  int checked = 0;
  for (int i = 0; i < shardprop::testing::scaled(200); ++i) {
    CAPTURE(i);
    const Problem problem =
        testing::random_problem(rng, {.most_variables = 5, .most_choices = 3});
    Network network(problem);
    if (network.infeasible) continue;
    const Core core(network, 1e6);
    if (core.rows() > 0 || core.size() == 0) continue;
    DualBound dual(core);
    for (int step = 0; step < 1 + i % 5; ++step) dual.advance(kInfinity);
    std::vector<int> met(at(core.size()));
    std::iota(met.begin(), met.end(), 0);
    for (std::size_t k = met.size(); k > 1; --k) {
      std::swap(met[k - 1], met[at(rng.below(static_cast<int>(k)))]);
    }
    check_shifted(core, dual, met);
    ++checked;
  }
  CHECK(checked > 30);
}

}  // namespace
}  // namespace shardprop::solver

// Samples small random problems with every feature: copies, forbidden entries,
// parallel and separable edges, several intervals a choice, empty intervals,
// pins, and limits that bind or are missing. It also computes the answer by
// full enumeration.
#pragma once

#include <shardprop/solver/checker.h>
#include <shardprop/solver/problem.h>
#include "solver/model/rng.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace shardprop::solver::testing {

struct RandomShape {
  int most_variables = 9;
  int most_choices = 4;
  std::int64_t most_cost = 20;
  std::int64_t bytes_unit = 1;  // bytes are below 10 of it
  int most_assignments = 20000;
};

inline Problem random_problem(Rng& rng, const RandomShape& shape) {
  ProblemBuilder builder;
  const int n = 1 + rng.below(shape.most_variables);
  std::vector<int> choices;
  double product = 1;
  for (int v = 0; v < n; ++v) {
    int k = 1 + rng.below(shape.most_choices);
    while (product * k > shape.most_assignments) --k;
    product *= k;
    choices.push_back(k);
  }
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(rng.unit() * static_cast<double>(bound));
  };
  const bool negative = rng.below(8) == 0;
  const double forbidden = rng.below(2) == 0 ? 0.0 : 0.05 + 0.35 * rng.unit();
  const auto cost = [&] {
    if (rng.unit() < forbidden) return kForbidden;
    return below(shape.most_cost + 1) - (negative ? shape.most_cost / 2 : 0);
  };
  for (int v = 0; v < n; ++v) {
    std::vector<std::int64_t> costs(
        static_cast<std::size_t>(choices[static_cast<std::size_t>(v)]));
    for (auto& c : costs) c = rng.below(3) == 0 ? 0 : cost();
    const VariableId id = builder.add_variable(costs);
    const int usages = rng.below(4);
    for (int u = 0; u < usages; ++u) {
      const std::int64_t lo = rng.below(12);
      const Interval when{lo, lo + rng.below(6)};  // may be empty
      std::vector<std::int64_t> bytes(costs.size());
      for (auto& b : bytes) {
        b = rng.below(4) == 0 ? 0 : rng.below(10) * shape.bytes_unit;
        if (b > 0 && shape.bytes_unit > 1) b -= below(shape.bytes_unit);
      }
      builder.add_usage(id, when, bytes);
    }
  }
  const int edges = n < 2 ? rng.below(2) : rng.below(2 * n + 1);
  std::optional<TableId> shared;
  std::pair<std::size_t, std::size_t> shared_shape;
  for (int e = 0; e < edges; ++e) {
    const auto a = static_cast<std::size_t>(rng.below(n));
    const auto b = static_cast<std::size_t>(rng.below(n));
    const auto rows = static_cast<std::size_t>(choices[a]);
    const auto columns = static_cast<std::size_t>(choices[b]);
    std::vector<std::int64_t> costs(rows * columns);
    const int kind = rng.below(5);
    std::vector<std::int64_t> f(rows);
    std::vector<std::int64_t> g(columns);
    for (auto& x : f) x = below(shape.most_cost);
    for (auto& x : g) x = below(shape.most_cost);
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) {
        std::int64_t& c = costs[i * columns + j];
        if (kind == 0) {
          c = f[i] + g[j];  // separable
        } else if (kind == 1) {
          c = i % columns == j % rows ? 0 : kForbidden;  // a copy, a tie
        } else {
          c = cost();
        }
      }
    }
    TableId table = builder.add_table(rows, columns, costs);
    if (shared.has_value() && shared_shape == std::pair(rows, columns) &&
        rng.below(2) == 0) {
      table = *shared;
    }
    shared = table;
    shared_shape = {rows, columns};
    builder.add_edge(VariableId(a), VariableId(b), table);
  }
  if (rng.below(8) == 0) {
    const int v = rng.below(n);
    builder.pin(VariableId(static_cast<std::size_t>(v)),
                static_cast<std::uint32_t>(
                    rng.below(choices[static_cast<std::size_t>(v)])));
  }
  if (rng.below(4) != 0) {
    builder.set_limit(rng.below(6 * n + 4) * shape.bytes_unit);
  }
  return *std::move(builder).build();
}

// Every pair of variables has an edge: no bound of messages is tight.
inline Problem complete_graph(Rng& rng, std::size_t variables,
                              std::size_t choices) {
  ProblemBuilder builder;
  const auto costs = [&](std::size_t n) {
    std::vector<std::int64_t> out(n);
    for (auto& cost : out) cost = rng.below(50);
    return out;
  };
  for (std::size_t v = 0; v < variables; ++v) {
    builder.add_variable(costs(choices));
  }
  for (std::size_t a = 0; a < variables; ++a) {
    for (std::size_t b = a + 1; b < variables; ++b) {
      const TableId table =
          builder.add_table(choices, choices, costs(choices * choices));
      builder.add_edge(VariableId(a), VariableId(b), table);
    }
  }
  return *std::move(builder).build();
}

// A program of equal layers, each a ring of operators; costs of all sizes, as
// those of layouts are, on edges to two to the power of `edge_bits`.
inline Problem chain_of_rings(std::uint64_t seed, int edge_bits = 17) {
  constexpr std::size_t kLayers = 32;
  constexpr std::size_t kRing = 8;
  constexpr std::size_t kChoices = 16;
  Rng rng(seed);
  ProblemBuilder builder;
  const auto costs = [&](std::size_t n, int bits) {
    std::vector<std::int64_t> out(n);
    for (auto& cost : out) cost = rng.below(2 << rng.below(bits));
    return out;
  };
  std::vector<TableId> tables;
  for (std::size_t i = 0; i < 2 * kRing; ++i) {
    tables.push_back(builder.add_table(kChoices, kChoices,
                                       costs(kChoices * kChoices, edge_bits)));
  }
  std::vector<std::vector<std::int64_t>> of_operator;
  for (std::size_t i = 0; i < kRing; ++i) {
    of_operator.push_back(costs(kChoices, 17));
  }
  std::vector<VariableId> before;
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    std::vector<VariableId> ring;
    for (std::size_t i = 0; i < kRing; ++i) {
      ring.push_back(builder.add_variable(of_operator[i]));
    }
    for (std::size_t i = 0; i < kRing; ++i) {
      builder.add_edge(ring[i], ring[(i + 1) % kRing], tables[i]);
      if (layer == 0 || i % 2 == 1) continue;
      builder.add_edge(before[i], ring[(i + 3) % kRing], tables[kRing + i]);
    }
    before = ring;
  }
  return *std::move(builder).build();
}

// The least cost over all assignments, by the checker; nothing if none holds.
inline std::optional<Int128> brute_force(const Problem& problem) {
  Assignment x(problem.num_variables(), 0);
  std::optional<Int128> best;
  for (;;) {
    const auto judged = evaluate(problem, x);
    if (judged->feasible() && (!best.has_value() || judged->cost < *best)) {
      best = judged->cost;
    }
    std::size_t v = 0;
    while (v < x.size() && ++x[v] == problem.num_choices(VariableId(v)))
      x[v++] = 0;
    if (v == x.size()) return best;
  }
}

}  // namespace shardprop::solver::testing

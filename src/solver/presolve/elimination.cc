#include "solver/presolve/passes.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "base/index.h"
#include "solver/tuning.h"

namespace shardprop::solver {
namespace {

// Returns, for each choice of the neighbour (or once, without one), the choice
// of v that is both cheapest and uses least. Returns an empty list if some
// choice of the neighbour has none.
std::vector<int> best_at_any_price(Network& network, int v) {
  const NetVariable& variable = network.variables[index(v)];
  const std::size_t k = variable.costs.size();
  int table = -1;
  std::size_t columns = 1;
  if (!variable.edges.empty()) {
    const NetEdge& edge = network.edges[index(variable.edges[0])];
    table = network.table_from(edge, v);
    columns = static_cast<std::size_t>(network.tables().shape(table).columns);
  }
  std::vector<int> out;
  for (std::size_t d = 0; d < columns; ++d) {
    const auto cost = [&](std::size_t c) {
      return variable.costs[c] +
             (table < 0 ? 0.0
                        : network.tables().at(table, static_cast<int>(c),
                                              static_cast<int>(d)));
    };
    const auto better = [&](std::size_t x, std::size_t y) {
      if (cost(x) != cost(y)) return cost(x) < cost(y);
      for (const Segment& s : variable.segments) {
        if (s.bytes[x] != s.bytes[y]) return s.bytes[x] < s.bytes[y];
      }
      return false;
    };
    std::size_t best = 0;
    for (std::size_t c = 1; c < k; ++c) best = better(c, best) ? c : best;
    for (std::size_t c = 0; c < k; ++c) {
      if (!std::isfinite(cost(c))) continue;
      for (const Segment& s : variable.segments) {
        if (s.bytes[best] > s.bytes[c]) return {};
      }
    }
    out.push_back(static_cast<int>(best));
  }
  return out;
}

// Returns, for each choice of the neighbours (two, one or none), the least cost
// over the choices of a variable. It also returns the first choice with this
// cost.
Marginal minimise(const Network& network, const std::vector<double>& costs,
                  const std::vector<int>& tables, const std::vector<int>& sizes,
                  std::size_t entries) {
  Marginal out{std::vector<double>(entries, kInfinity),
               std::vector<int>(entries, 0)};
  const std::size_t last =
      tables.size() == 2 ? static_cast<std::size_t>(sizes[1]) : 1;
  const double nothing = 0;
  for (std::size_t c = 0; c < costs.size(); ++c) {
    const double* first = tables.empty()
                              ? &nothing
                              : network.tables().costs(tables[0]).data() +
                                    c * static_cast<std::size_t>(sizes[0]);
    const double* second =
        tables.size() < 2 ? &nothing
                          : network.tables().costs(tables[1]).data() + c * last;
    for (std::size_t i = 0; i < entries; i += last) {
      const double base = costs[c] + first[i / last];
      double* best = out.best.data() + i;
      int* choice = out.choice.data() + i;
      for (std::size_t j = 0; j < last; ++j) {
        const double cost = base + second[j];
        const bool better = cost < best[j];
        best[j] = better ? cost : best[j];
        choice[j] = better ? static_cast<int>(c) : choice[j];
      }
    }
  }
  return out;
}

}  // namespace

bool eliminate_exactly(Network& network, int v, std::size_t cap,
                       EliminationMemo* memo) {
  const std::vector<int> mine = network.live_edges(v);
  const NetVariable& variable = network.variables[index(v)];
  if (mine.size() > 2) return false;
  TrailStep step;
  std::vector<int> tables;
  std::size_t entries = 1;
  for (const int e : mine) {
    const NetEdge& edge = network.edges[index(e)];
    step.on.push_back(edge.other(v));
    tables.push_back(network.table_from(edge, v));
    step.sizes.push_back(network.tables().shape(tables.back()).columns);
    entries *= static_cast<std::size_t>(step.sizes.back());
  }
  if (entries > cap) return false;
  Marginal* known = nullptr;
  if (memo != nullptr) {
    std::vector<double> key{static_cast<double>(variable.costs.size())};
    key.insert(key.end(), variable.costs.begin(), variable.costs.end());
    key.insert(key.end(), tables.begin(), tables.end());
    known = &(*memo)[std::move(key)];
  }
  Marginal own;
  Marginal& result = known == nullptr ? own : *known;
  if (result.best.empty()) {
    result = minimise(network, variable.costs, tables, step.sizes, entries);
  }
  std::vector<double> best = result.best;
  step.choice = result.choice;
  const std::vector<int> on = step.on;
  const std::vector<int> sizes = step.sizes;
  if (on.empty() && !std::isfinite(best[0])) {
    network.infeasible = true;
  } else if (on.empty()) {
    network.offset += static_cast<Int128>(best[0]);
  } else if (on.size() == 1) {
    std::vector<double>& costs = network.variables[index(on[0])].costs;
    for (std::size_t d = 0; d < entries; ++d) costs[d] += best[d];
  }
  network.forget(v, std::move(step));
  if (on.size() < 2) return true;
  const int table =
      network.tables().intern(sizes[0], sizes[1], std::move(best));
  for (const int e : network.live_edges(on[0])) {
    NetEdge& edge = network.edges[index(e)];
    if (edge.other(on[0]) != on[1]) continue;
    const int sum =
        network.tables().sum(network.table_from(edge, on[0]), table);
    edge.table = edge.a == on[0] ? sum : network.tables().transposed(sum);
    return true;
  }
  network.add_edge(on[0], on[1], table);
  return true;
}

bool eliminate_low_degree(Network& network) {
  bool changed = false;
  EliminationMemo memo;
  std::deque<int> queue;
  std::vector<char> queued(network.variables.size(), 1);
  for (std::size_t v = 0; v < network.variables.size(); ++v) {
    queue.push_back(static_cast<int>(v));
  }
  while (!queue.empty()) {
    const int v = queue.front();
    queue.pop_front();
    queued[index(v)] = 0;
    if (!network.variables[index(v)].alive) continue;
    const std::vector<int>& mine = network.live_edges(v);
    if (mine.size() > 2) continue;
    std::vector<int> neighbours;
    neighbours.reserve(mine.size());
    for (const int e : mine) {
      neighbours.push_back(network.edges[index(e)].other(v));
    }
    bool done = false;
    if (network.variables[index(v)].segments.empty()) {
      done = eliminate_exactly(network, v, tuning::kMostPairEntries, &memo);
    } else if (neighbours.size() < 2) {
      const std::vector<int> map = best_at_any_price(network, v);
      if (!map.empty() && !neighbours.empty()) {
        absorb(network, neighbours[0], v, map);
        done = true;
      } else if (!map.empty()) {
        network.keep_choices(v, {map[0]});
        network.tidy_segments(v);
        queue.push_back(v);
        changed = true;
      }
    }
    if (!done) continue;
    changed = true;
    for (const int u : neighbours) {
      if (queued[index(u)] != 0) continue;
      queued[index(u)] = 1;
      queue.push_back(u);
    }
  }
  return changed;
}

}  // namespace shardprop::solver

#include "solver/presolve/passes.h"

#include <algorithm>
#include <unordered_map>

#include "base/index.h"

namespace shardprop::solver {

bool merge_parallel_edges(Network& network) {
  bool changed = false;
  std::unordered_map<std::uint64_t, int> first;
  first.reserve(network.edges.size());
  for (std::size_t e = 0; e < network.edges.size(); ++e) {
    NetEdge& edge = network.edges[e];
    if (!edge.alive) continue;
    const auto [lo, hi] = std::minmax(edge.a, edge.b);
    const std::uint64_t key =
        (static_cast<std::uint64_t>(lo) << 32) | static_cast<std::uint64_t>(hi);
    const auto [it, fresh] = first.emplace(key, static_cast<int>(e));
    if (fresh) continue;
    NetEdge& kept = network.edges[index(it->second)];
    kept.table =
        network.tables().sum(kept.table, network.table_from(edge, kept.a));
    network.remove_edge(static_cast<int>(e));
    changed = true;
  }
  return changed;
}

bool drop_separable_edges(Network& network) {
  bool changed = false;
  for (std::size_t e = 0; e < network.edges.size(); ++e) {
    const NetEdge edge = network.edges[e];
    if (!edge.alive || !network.tables().is_separable(edge.table)) continue;
    std::vector<double>& a = network.variables[index(edge.a)].costs;
    std::vector<double>& b = network.variables[index(edge.b)].costs;
    const double corner = network.tables().at(edge.table, 0, 0);
    for (std::size_t c = 0; c < a.size(); ++c) {
      a[c] += network.tables().at(edge.table, static_cast<int>(c), 0) - corner;
    }
    for (std::size_t c = 0; c < b.size(); ++c) {
      b[c] += network.tables().at(edge.table, 0, static_cast<int>(c));
    }
    network.remove_edge(static_cast<int>(e));
    changed = true;
  }
  return changed;
}

}  // namespace shardprop::solver

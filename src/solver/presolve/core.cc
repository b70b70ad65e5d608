#include "solver/presolve/core.h"

#include <algorithm>
#include <unordered_map>

#include "base/index.h"

namespace shardprop::solver {

Core::Core(Network& network, double top)
    : capacity(network.capacity), offset(network.offset), ceiling(top) {
  const auto clip = [top](std::vector<double> costs) {
    for (double& cost : costs) cost = std::min(cost, top);
    return costs;
  };
  std::vector<int> mine(network.variables.size(), -1);
  at.push_back(0);
  segment_begin.push_back(0);
  for (std::size_t i = 0; i < network.variables.size(); ++i) {
    const NetVariable& variable = network.variables[i];
    if (!variable.alive) continue;
    mine[i] = size();
    network_variable.push_back(static_cast<int>(i));
    for (const double cost : clip(variable.costs)) unary.push_back(cost);
    at.push_back(static_cast<int>(unary.size()));
    for (const Segment& s : variable.segments) {
      segment_list.push_back({s.lo, s.hi, bytes.size()});
      bytes.insert(bytes.end(), s.bytes.begin(), s.bytes.end());
    }
    segment_begin.push_back(segment_list.size());
  }
  std::unordered_map<int, std::size_t> table_of;
  const auto table = [&](int id) {
    const auto [it, fresh] = table_of.emplace(id, tables_.size());
    if (fresh) tables_.push_back(clip(network.tables().costs(id)));
    return tables_[it->second].data();
  };
  std::vector<std::size_t> degree(static_cast<std::size_t>(size()) + 1, 0);
  for (const NetEdge& edge : network.edges) {
    if (!edge.alive) continue;
    const int a = mine[index(edge.a)];
    const int b = mine[index(edge.b)];
    const int transposed = network.tables().transposed(edge.table);
    edges.push_back({a, b, table(edge.table), table(transposed)});
    ++degree[index(a) + 1];
    ++degree[index(b) + 1];
  }
  for (std::size_t v = 1; v < degree.size(); ++v) degree[v] += degree[v - 1];
  arc_begin = degree;
  arc_list.resize(degree.back());
  for (std::size_t e = 0; e < edges.size(); ++e) {
    const CoreEdge& edge = edges[e];
    arc_list[degree[index(edge.a)]++] = {edge.b, static_cast<int>(e),
                                         edge.table, edge.transposed};
    arc_list[degree[index(edge.b)]++] = {edge.a, static_cast<int>(e),
                                         edge.transposed, edge.table};
  }
}

}  // namespace shardprop::solver

#include "solver/presolve/passes.h"

#include <cmath>
#include <deque>

#include "base/index.h"

namespace shardprop::solver {
namespace {

// Returns the edge between x and z, or -1; searches the shorter edge list.
int edge_between(const Network& network, int x, int z) {
  const std::vector<int>& of_x = network.variables[index(x)].edges;
  const std::vector<int>& of_z = network.variables[index(z)].edges;
  const bool from_x = of_x.size() < of_z.size();
  for (const int e : from_x ? of_x : of_z) {
    const NetEdge& edge = network.edges[index(e)];
    if (edge.alive && edge.other(from_x ? x : z) == (from_x ? z : x)) return e;
  }
  return -1;
}

// Returns the one allowed column of each row.
std::vector<int> function_of(const TablePool& tables, int table) {
  const auto [rows, columns] = tables.shape(table);
  std::vector<int> map(static_cast<std::size_t>(rows), 0);
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      if (std::isfinite(tables.at(table, r, c))) map[index(r)] = c;
    }
  }
  return map;
}

}  // namespace

void absorb(Network& network, int x, int y, const std::vector<int>& map) {
  NetVariable& into = network.variables[index(x)];
  NetVariable& from = network.variables[index(y)];
  for (std::size_t c = 0; c < map.size(); ++c) {
    into.costs[c] += from.costs[index(map[c])];
  }
  for (const Segment& segment : from.segments) {
    std::vector<std::int64_t> bytes;
    bytes.reserve(map.size());
    for (const int c : map) bytes.push_back(segment.bytes[index(c)]);
    into.segments.push_back({segment.lo, segment.hi, std::move(bytes)});
  }
  const std::vector<int> moving = network.live_edges(y);
  for (const int e : moving) {
    const NetEdge edge = network.edges[index(e)];
    const int z = edge.other(y);
    const int table =
        network.tables().gather_rows(network.table_from(edge, y), map);
    network.remove_edge(e);
    if (z == x) {
      for (std::size_t c = 0; c < map.size(); ++c) {
        into.costs[c] += network.tables().at(table, static_cast<int>(c),
                                             static_cast<int>(c));
      }
      continue;
    }
    if (const int parallel = edge_between(network, x, z); parallel >= 0) {
      NetEdge& other = network.edges[index(parallel)];
      const int sum = network.tables().sum(network.table_from(other, x), table);
      other.table = other.a == x ? sum : network.tables().transposed(sum);
    } else {
      network.add_edge(x, z, table);
    }
  }
  TrailStep step;
  step.on = {x};
  step.sizes = {static_cast<int>(map.size())};
  step.choice = map;
  network.forget(y, std::move(step));
}

bool contract_determined(Network& network) {
  bool changed = false;
  std::deque<int> queue;
  std::vector<char> queued(network.variables.size(), 1);
  for (std::size_t v = 0; v < network.variables.size(); ++v) {
    if (network.variables[v].alive) queue.push_back(static_cast<int>(v));
  }
  while (!queue.empty()) {
    const int v = queue.front();
    queue.pop_front();
    queued[index(v)] = 0;
    for (bool again = true; again && network.variables[index(v)].alive;) {
      again = false;
      const std::vector<int> mine = network.live_edges(v);
      for (const int e : mine) {
        const NetEdge edge = network.edges[index(e)];
        if (!edge.alive) continue;
        const int u = edge.other(v);
        const int forward = network.table_from(edge, v);
        const int backward = network.tables().transposed(forward);
        const bool i_tell = network.tables().is_functional(forward);
        const bool u_tells = network.tables().is_functional(backward);
        if (!i_tell && !u_tells) continue;
        // If each determines the other, the one with fewer edges is absorbed.
        const bool keep_me =
            i_tell && (!u_tells ||
                       mine.size() >= network.variables[index(u)].edges.size());
        changed = true;
        if (keep_me) {
          absorb(network, v, u, function_of(network.tables(), forward));
          again = true;
        } else {
          absorb(network, u, v, function_of(network.tables(), backward));
          if (queued[index(u)] == 0) queue.push_back(u);
          queued[index(u)] = 1;
          break;
        }
      }
    }
  }
  return changed;
}

}  // namespace shardprop::solver

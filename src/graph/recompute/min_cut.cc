// The algorithm of Dinic: flow along shortest paths, one distance after the other.
#include "graph/recompute/min_cut.h"

#include <algorithm>

namespace shardprop {

void MinCut::add_edge(std::size_t from, std::size_t to,
                      std::int64_t capacity) {
  edges_of_[from].push_back(edges_.size());
  edges_.push_back({to, capacity});
  edges_of_[to].push_back(edges_.size());
  edges_.push_back({from, 0});
}

std::vector<bool> MinCut::reaches_sink(std::size_t source, std::size_t sink) {
  while (find_distances(source, sink)) {
    next_.assign(edges_of_.size(), 0);
    while (const std::int64_t flow = augment(source, sink)) {
      // No cut has as much if no edge of the path may be cut.
      if (flow >= kUncut / 2) return {};
    }
  }
  // Follows the edges with capacity left backwards from the sink.
  std::vector<bool> reaches(edges_of_.size(), false);
  std::vector<std::size_t> open{sink};
  reaches[sink] = true;
  while (!open.empty()) {
    const std::size_t at = open.back();
    open.pop_back();
    for (const std::size_t e : edges_of_[at]) {
      const std::size_t from = edges_[e].to;
      if (edges_[e ^ 1U].left == 0 || reaches[from]) continue;
      reaches[from] = true;
      open.push_back(from);
    }
  }
  return reaches;
}

bool MinCut::find_distances(std::size_t source, std::size_t sink) {
  distance_.assign(edges_of_.size(), -1);
  distance_[source] = 0;
  std::vector<std::size_t> open{source};
  for (std::size_t i = 0; i < open.size(); ++i) {
    const std::size_t at = open[i];
    for (const std::size_t e : edges_of_[at]) {
      const Edge& edge = edges_[e];
      if (edge.left == 0 || distance_[edge.to] >= 0) continue;
      distance_[edge.to] = distance_[at] + 1;
      open.push_back(edge.to);
    }
  }
  return distance_[sink] >= 0;
}

// Sends flow along one path of the present distances. Returns 0 if there is none.
std::int64_t MinCut::augment(std::size_t source, std::size_t sink) {
  std::vector<std::size_t> path;  // edges
  std::size_t at = source;
  while (at != sink) {
    std::size_t& next = next_[at];
    while (next < edges_of_[at].size()) {
      const Edge& edge = edges_[edges_of_[at][next]];
      if (edge.left > 0 && distance_[edge.to] == distance_[at] + 1) break;
      ++next;
    }
    if (next < edges_of_[at].size()) {
      path.push_back(edges_of_[at][next]);
      at = edges_[path.back()].to;
      continue;
    }
    if (path.empty()) return 0;
    at = edges_[path.back() ^ 1U].to;
    path.pop_back();
    ++next_[at];
  }
  std::int64_t flow = kUncut;
  for (const std::size_t e : path) flow = std::min(flow, edges_[e].left);
  for (const std::size_t e : path) {
    edges_[e].left -= flow;
    edges_[e ^ 1U].left += flow;
  }
  return flow;
}

}  // namespace shardprop

#include "graph/recompute/min_cut.h"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>

namespace shardprop {
namespace {

using Traits =
    boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;

struct FlowEdge {
  std::int64_t capacity = 0;
  std::int64_t left = 0;
  Traits::edge_descriptor opposite;
};

struct FlowVertex {
  boost::default_color_type color = boost::white_color;
  std::int64_t distance = 0;
  Traits::edge_descriptor predecessor;
};

using FlowGraph = boost::adjacency_list<boost::vecS, boost::vecS,
                                        boost::directedS, FlowVertex, FlowEdge>;

void add_pair(FlowGraph& graph, std::size_t from, std::size_t to,
              std::int64_t capacity) {
  const auto there = boost::add_edge(from, to, graph).first;
  const auto back = boost::add_edge(to, from, graph).first;
  graph[there].capacity = capacity;
  graph[there].opposite = back;
  graph[back].opposite = there;
}

// Returns the vertices from which a path of edges with `room` leads to the sink.
template <typename Room>
std::vector<bool> leading_to(const FlowGraph& graph, std::size_t sink,
                             const Room& room) {
  std::vector<bool> leads(boost::num_vertices(graph), false);
  std::vector<std::size_t> open{sink};
  leads[sink] = true;
  while (!open.empty()) {
    const std::size_t at = open.back();
    open.pop_back();
    const auto [begin, end] = boost::out_edges(at, graph);
    for (auto edge = begin; edge != end; ++edge) {
      const std::size_t from = boost::target(*edge, graph);
      if (leads[from] || !room(graph[graph[*edge].opposite])) continue;
      leads[from] = true;
      open.push_back(from);
    }
  }
  return leads;
}

}  // namespace

std::vector<bool> MinCut::reaches_sink(std::size_t source,
                                       std::size_t sink) const {
  FlowGraph graph(vertices_);
  for (const Edge& edge : edges_) {
    add_pair(graph, edge.from, edge.to, edge.capacity);
  }
  const std::vector<bool> uncut = leading_to(
      graph, sink, [](const FlowEdge& e) { return e.capacity >= kUncut; });
  if (uncut[source]) return {};
  boost::boykov_kolmogorov_max_flow(
      graph, boost::get(&FlowEdge::capacity, graph),
      boost::get(&FlowEdge::left, graph),
      boost::get(&FlowEdge::opposite, graph),
      boost::get(&FlowVertex::predecessor, graph),
      boost::get(&FlowVertex::color, graph),
      boost::get(&FlowVertex::distance, graph),
      boost::get(boost::vertex_index, graph), source, sink);
  return leading_to(graph, sink, [](const FlowEdge& e) { return e.left > 0; });
}

}  // namespace shardprop

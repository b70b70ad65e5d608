// `MinCut` finds a set of edges of least capacity that separates a source from a
// sink.
//
//   MinCut cut(4);            // vertices 0 to 3
//   cut.add_edge(0, 1, 5);
//   cut.add_edge(1, 3, 2);
//   cut.reaches_sink(0, 3);   // {false, false, false, true}: the edge 1 -> 3
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardprop {

class MinCut {
 public:
  // The capacity of an edge that no cut contains.
  static constexpr std::int64_t kUncut = std::int64_t{1} << 60;

  explicit MinCut(std::size_t vertices) : edges_of_(vertices) {}
  void add_edge(std::size_t from, std::size_t to, std::int64_t capacity);

  // Returns the vertices on the side of the sink, by vertex. If several cuts are
  // least, it is the one next to the sink. The list is empty if every cut has an
  // edge that must not be cut.
  std::vector<bool> reaches_sink(std::size_t source, std::size_t sink);

 private:
  struct Edge {
    std::size_t to = 0;
    std::int64_t left = 0;  // capacity
  };

  bool find_distances(std::size_t source, std::size_t sink);
  std::int64_t augment(std::size_t source, std::size_t sink);

  // Edges 2k and 2k + 1 lead in opposite directions.
  std::vector<Edge> edges_;
  std::vector<std::vector<std::size_t>> edges_of_;  // by vertex
  std::vector<std::int32_t> distance_;              // by vertex; -1: not reached
  std::vector<std::size_t> next_;                   // by vertex: the edge to try
};

}  // namespace shardprop

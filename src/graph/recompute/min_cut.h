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
  // The capacity of an edge that no cut contains. The other capacities of a graph
  // add up to less.
  static constexpr std::int64_t kUncut = std::int64_t{1} << 60;

  explicit MinCut(std::size_t vertices) : vertices_(vertices) {}
  void add_edge(std::size_t from, std::size_t to, std::int64_t capacity) {
    edges_.push_back({from, to, capacity});
  }

  // Returns the vertices on the side of the sink, by vertex. If several cuts are
  // least, it is the one next to the sink. The list is empty if every cut has an
  // edge that must not be cut.
  std::vector<bool> reaches_sink(std::size_t source, std::size_t sink) const;

 private:
  struct Edge {
    std::size_t from = 0;
    std::size_t to = 0;
    std::int64_t capacity = 0;
  };

  std::size_t vertices_;
  std::vector<Edge> edges_;
};

}  // namespace shardprop

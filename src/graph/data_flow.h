// DataFlow stores the edges from producer to consumer as a Boost.Graph graph.
#pragma once

#include <boost/graph/adjacency_list.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace shardprop {

class DataFlow {
 public:
  DataFlow() = default;
  explicit DataFlow(std::size_t nodes) : graph_(nodes) {}

  void add_edge(std::size_t producer, std::size_t consumer);
  // Returns one flag per node: whether a node of `of` depends on it or is it.
  std::vector<bool> ancestors(std::span<const std::size_t> of) const;

 private:
  using Adjacency =
      boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS>;
  Adjacency graph_;
};

}  // namespace shardprop

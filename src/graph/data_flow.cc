#include "graph/data_flow.h"

#include <boost/graph/depth_first_search.hpp>
#include <boost/graph/reverse_graph.hpp>

namespace shardprop {

void DataFlow::add_edge(std::size_t producer, std::size_t consumer) {
  boost::add_edge(producer, consumer, graph_);
}

std::vector<bool> DataFlow::ancestors(std::span<const std::size_t> of) const {
  const auto upwards = boost::make_reverse_graph(graph_);
  std::vector<boost::default_color_type> colors(
      boost::num_vertices(graph_), boost::default_color_type::white_color);
  const auto color_map = boost::make_iterator_property_map(
      colors.begin(), boost::get(boost::vertex_index, upwards));
  for (const std::size_t node : of) {
    if (colors[node] == boost::default_color_type::white_color) {
      // BGL's visit has its own stack, so a long chain causes no recursion.
      boost::depth_first_visit(upwards, node, boost::default_dfs_visitor(),
                               color_map);
    }
  }
  std::vector<bool> found(colors.size());
  for (std::size_t i = 0; i < colors.size(); ++i) {
    found[i] = colors[i] != boost::default_color_type::white_color;
  }
  return found;
}

}  // namespace shardprop

// GraphStructure is a graph without names and without the order of its
// schedule: its nodes and inputs, what each of them computes, and who reads
// whom.
//
// An element is a node or an input of the graph. Nodes come first:
//
//   x, w -> mm -> relu      elements 0 mm, 1 relu, 2 x, 3 w
//
// Second runs (graph/recompute.h) have neither operands nor readers. A reader
// of a result of one is a reader of the first run. A graph thus has the same
// structure with and without second runs.
#pragma once

#include <shardprop/graph/graph.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shardprop {

class GraphStructure {
 public:
  using Element = std::uint32_t;
  static constexpr Element kNoElement = 0xffffffffU;

  struct Operand {
    Element producer = 0;
    std::uint32_t output = 0;  // among the results of the producer
  };
  struct Reader {
    Element reader = 0;
    std::uint32_t operand = 0;  // among the operands of the reader
    std::uint32_t output = 0;   // the result that it reads
  };

  explicit GraphStructure(const Graph& graph);

  std::size_t size() const { return signatures_.size(); }
  std::size_t num_nodes() const { return num_nodes_; }
  bool is_node(Element element) const { return element < num_nodes_; }
  bool is_parameter(Element element) const;
  bool is_second_run(Element element) const;
  // An input is in the backward phase if only backward nodes read it.
  bool is_backward(Element element) const { return backward_[element]; }
  // Returns the operator with its arguments and the metas of its results, as a
  // hash; for an input its kind and its meta.
  std::uint64_t signature(Element element) const {
    return signatures_[element];
  }
  // Returns the number of nodes on the longest path from an input to this
  // element, itself included; 0 for inputs.
  std::int32_t depth(Element element) const { return depths_[element]; }
  // Returns the nodes in an order that keeps the flow of data: by depth.
  std::span<const Element> by_depth() const { return by_depth_; }
  std::span<const Operand> operands(Element element) const {
    return range(operands_, first_operand_, element);
  }
  std::span<const Reader> readers(Element element) const {
    return range(readers_, first_reader_, element);
  }
  // Returns the bytes of the unsharded results of an element.
  std::int64_t bytes(Element element) const { return bytes_[element]; }

  // Returns a label for each element. Two elements have the same label if
  // their surroundings up to `radius` edges away are alike: the operands in
  // order, and the readers as a set.
  std::vector<std::uint64_t> labels(int radius) const;

 private:
  template <class T>
  static std::span<const T> range(const std::vector<T>& all,
                                  const std::vector<std::size_t>& first,
                                  Element element) {
    return std::span(all).subspan(first[element],
                                  first[element + 1] - first[element]);
  }
  void add_signatures();
  void add_edges();
  void add_depths();

  const Graph& graph_;
  std::size_t num_nodes_ = 0;
  std::vector<std::uint64_t> signatures_;
  std::vector<std::int64_t> bytes_;
  std::vector<bool> backward_;
  std::vector<std::int32_t> depths_;
  std::vector<Element> by_depth_;
  std::vector<Operand> operands_;
  std::vector<std::size_t> first_operand_;
  std::vector<Reader> readers_;
  std::vector<std::size_t> first_reader_;
};

}  // namespace shardprop

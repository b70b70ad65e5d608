// FusionGroups finds the operators that share one kernel, by one of two rules.
//
// KernelRule::kCompiler is the rule of PyTorch's scheduler
// (torch/_inductor/fx_passes/fusion_regions.py). Operators that cannot be fused
// split the schedule into runs of fusable ones. Within a run, operators that
// read from each other form a group if at least two of them are more than
// views.
//
//   mm, permute, mul, add, mm     one group: permute, mul, add
//
// KernelRule::kEager is the rule of eager PyTorch. The program runs one kernel
// for an operator that the exporter decomposed, such as
// native_layer_norm_backward. So operators that read from each other form a
// group if the decomposition of one operator produced them
// (Node::decomposed_from).
//
// A kernel reads each value from outside its group once, and writes each value
// that is read outside once. Groups are found on the whole graph and do not
// depend on layouts.
#pragma once

#include <shardprop/graph/graph.h>
#include <shardprop/strategy/op_cost.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardprop {

// Fusing states how a node may be fused with others.
enum class Fusing : std::uint8_t {
  kCuts,     // a kernel of its own that ends the run: matmuls, attention, scans
  kAlone,    // a kernel of its own: a write into a part of a tensor
  kCompute,  // an operator on elements, a cast, a reduction
  kView,     // moves no data
};

enum class KernelRule : std::uint8_t { kCompiler, kEager };

// Returns how a node with this index space may be fused. A node without a rule
// (`is_understood` is false) is a kernel of its own, and so is a node that
// writes its result into the memory of an operand (`is_in_place`).
Fusing fusing_of(const Graph& graph, const Node& node, const IndexSpace& space,
                 bool is_understood, bool is_in_place, KernelRule rule);

class FusionGroups {
 public:
  // `fusing` is indexed by node.
  FusionGroups(const Graph& graph, const std::vector<Fusing>& fusing,
               KernelRule rule);

  static constexpr std::int32_t kAlone = -1;
  std::int32_t group(NodeId node) const { return group_[node.index()]; }
  std::size_t size() const { return size_; }
  // Returns the reads and writes that the node adds to its group's kernel.
  // Precondition: the node is in a group and is not a view.
  KernelPart part(const Node& node) const;
  // Returns whether all readers of the value's memory, views included, are in
  // the group of its producer. The value is never written to memory then.
  // Precondition: the producer is in a group.
  bool stays_inside(ValueId value) const;

 private:
  void find_groups(const std::vector<Fusing>& fusing, KernelRule rule);
  void find_reads(const std::vector<Fusing>& fusing);
  bool is_inside(BufferId buffer, std::int32_t group) const;

  const Graph& graph_;
  std::vector<std::int32_t> group_;  // by node
  std::size_t size_ = 0;
  std::vector<bool> launches_;  // by node: the first of its kernel
  // By node and input: the share of the input that the kernel reads there; 0 if
  // the kernel has the input already.
  std::vector<std::vector<double>> reads_;
  std::vector<std::int32_t> producer_group_;  // by storage of the graph
  std::vector<bool> leaves_;  // by storage of the graph: read outside its group
};

}  // namespace shardprop

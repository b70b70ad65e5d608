// FusionGroups: which operators a compiler makes one kernel of, as PyTorch's
// scheduler groups them (torch/_inductor/fx_passes/fusion_regions.py): the
// schedule falls into runs of fusable operators between those that are not;
// within a run, operators that take from each other are a group, provided that
// two of them at least are more than views.
//
//   mm, permute, mul, add, mm     one group: permute, mul, add
//
// A kernel reads what it takes from outside and writes what is taken outside,
// once each. Groups are found on the whole graph, whatever the layouts.
#pragma once

#include <shardprop/graph/graph.h>
#include <shardprop/strategy/op_cost.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardprop {

// How a node may go together with others.
enum class Fusing : std::uint8_t {
  kCuts,     // a kernel of its own that others are not carried past: products,
             // attention, scans
  kAlone,    // a kernel of its own: a write into a part of a tensor
  kCompute,  // an operator on elements, a cast, a reduction
  kView,     // moves nothing
};

// Of a node with this index space. What is not understood is a kernel of its
// own.
Fusing fusing_of(const Graph& graph, const Node& node, const IndexSpace& space,
                 bool is_understood);

class FusionGroups {
 public:
  // `fusing` by node.
  FusionGroups(const Graph& graph, const std::vector<Fusing>& fusing);

  static constexpr std::int32_t kAlone = -1;
  std::int32_t group(NodeId node) const { return group_[node.index()]; }
  std::size_t size() const { return size_; }
  // What the node does for its group's kernel. Precondition: it is in a group
  // and no view.
  KernelPart part(const Node& node) const;
  // Whether all that take the memory of the value, or of a view of it, are in
  // the group of its maker: then it is never written. Precondition: the maker
  // is in a group.
  bool stays_inside(ValueId value) const;

 private:
  void find_groups(const std::vector<Fusing>& fusing);
  void find_reads(const std::vector<Fusing>& fusing);
  bool is_inside(StorageId storage, std::int32_t group) const;

  const Graph& graph_;
  std::vector<std::int32_t> group_;  // by node
  std::size_t size_ = 0;
  std::vector<bool> launches_;  // by node: the first of its kernel
  // By node and input: the share of what the operator takes that the kernel
  // reads there; 0 where it has it already.
  std::vector<std::vector<double>> reads_;
  std::vector<std::int32_t> maker_group_;  // by storage of the graph
  std::vector<bool> leaves_;  // by storage: someone outside takes it
};

}  // namespace shardprop

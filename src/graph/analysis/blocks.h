// Blocks divides a graph into its repeated blocks and the parts between them.
// It reads no names and no order of nodes: only operators, metas and who reads
// whom.
//
//   embed -> layer 0 -> ... -> layer 31 -> head     (forward and backward)
//   blocks  {embed} {layer 0} ... {layer 31} {head},  one run of 32 blocks
//
// A run is a row of equal blocks: each node of a block has a counterpart in the
// next one, with equal arguments and metas, whose operands are counterparts or
// one and the same element. A pattern that alternates is one block, such as a
// dense and an MoE layer together. The first or the last layer of a model is not
// in the run if its backward pass differs.
//
// A block has its nodes of both phases, and its parameters. Nodes outside all
// runs are one block before, between or after them: a forward node belongs after
// the last run that it depends on, a backward node before the first run whose
// backward nodes it depends on.
//
// Second runs (graph/recompute.h) do not change the runs, so that blocks of one run
// may run other operators again:
//
//   four layers, the first two run their operators again
//   one run of 4 blocks; blocks 0 and 1 have one code, blocks 2 and 3 another one
//
// A second run belongs to the block of its first reader.
#pragma once

#include <shardprop/graph/graph.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace shardprop {

struct Block {
  std::optional<std::size_t> run;  // index into Blocks::runs()
  std::size_t place = 0;           // in its run
  // Equal for blocks of runs that are equal and have counterparts as second runs.
  std::uint64_t code = 0;
  // Counterparts in the blocks of a run have equal positions in these lists.
  // Forward nodes come first, and second runs come last. Each other node comes after
  // its operands. An invalid node is at the position of a second run that only other
  // blocks of the run have.
  std::vector<NodeId> nodes;
  std::vector<ValueId> inputs;  // inputs of the graph
};

struct BlockRun {
  std::size_t first = 0;  // index into Blocks::blocks()
  std::size_t count = 0;  // at least 2
  // Equal for runs of equal blocks.
  std::uint64_t code = 0;
};

class Blocks {
 public:
  // Takes time linear in the number of repetitions.
  explicit Blocks(const Graph& graph);
  // Divides a graph without a run into `parts` blocks with equal shares of the
  // weights, in the order of the schedule. The k-th block of the forward phase
  // and the k-th last of the backward phase are one block. `weights` is indexed
  // by node. A graph with a run is divided at its blocks.
  Blocks(const Graph& graph, std::span<const std::int64_t> weights,
         std::size_t parts);

  // Blocks are in the order of the forward phase. Each node, and each input
  // that a node reads, is in exactly one block.
  std::span<const Block> blocks() const { return blocks_; }
  std::span<const BlockRun> runs() const { return runs_; }
  std::size_t block_of(NodeId node) const { return of_node_[node.index()]; }
  // Empty if no node reads the input.
  std::optional<std::size_t> block_of_input(ValueId input) const;
  // Returns the index of the node in Block::nodes.
  std::size_t position_of(NodeId node) const {
    return positions_[node.index()];
  }
  // Returns the node at the same position of another block of its run; invalid if
  // that block has no such second run. Precondition: both blocks are in one run.
  NodeId counterpart(NodeId node, std::size_t block) const {
    return blocks_[block].nodes[position_of(node)];
  }

 private:
  void divide(const Graph& graph, std::span<const std::int64_t> weights,
              std::size_t parts);
  void index_blocks(const Graph& graph);
  void add_second_runs(const Graph& graph);

  std::vector<Block> blocks_;
  std::vector<BlockRun> runs_;
  std::vector<std::size_t> of_node_;
  std::vector<std::size_t> positions_;
  std::vector<std::optional<std::size_t>> of_input_;  // by ValueId
};

}  // namespace shardprop

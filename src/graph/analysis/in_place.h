// InPlace finds the operators that write their result into the memory of an
// operand, and those that may overwrite an operand because no one reads it
// afterwards.
//
//   cache f32[64,64] (buffer) -> index_copy(cache, i, x) -> next, an update of
//   the cache: next has the memory of the cache
#pragma once

#include <shardprop/graph/graph.h>
#include <shardprop/ops/index_space.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace shardprop {

class InPlace {
 public:
  // `spaces` is indexed by node; null if a node has no index space.
  InPlace(const Graph& graph, const std::vector<const IndexSpace*>& spaces);

  // Returns the operand whose memory the first result of a node reuses, in the
  // plan's memory and in the program that runs. Empty if the result has memory
  // of its own. This needs five conditions:
  //   1. the operator writes into the operand (IndexSpace::writes_into), which
  //      has all elements of its memory, in one piece;
  //   2. the memory is that of an input that the program updates, directly or
  //      through earlier writes in place;
  //   3. the node is the last reader of the memory, and reads it once;
  //   4. no result of an earlier reader that is still needed may have the same
  //      memory; and
  //   5. the result is no output, except as the update of that input.
  std::optional<std::uint32_t> operand(const Node& node) const {
    return operands_[node.id.index()];
  }

  // Returns whether the kernel of `node` costs the written part alone. It does
  // if operand() has a value, and for a tensor that the program produced if
  // conditions 1 and 3 hold and the tensor is no output.
  bool may(const Node& node, std::size_t input) const;

 private:
  // The values that have, or may have, the same memory while no operator writes
  // into it.
  struct Memory {
    std::int64_t last_use = -1;  // index of a node
    int uses_there = 0;
    // The memory may not be overwritten: it is that of an output, or of several
    // inputs.
    bool is_kept = false;
    bool is_input = false;
    // The input that the program updates and whose memory this is. Invalid if
    // there is none.
    ValueId updated;
  };

  void join_views(const std::vector<const IndexSpace*>& spaces);
  void find_uses();
  void find_inputs();
  void find_operands(const std::vector<const IndexSpace*>& spaces);
  bool is_last_use(const Node& node, const Memory& memory) const;
  bool is_update_only(ValueId value, ValueId input) const;
  bool may_be_needed(const Node& node, std::size_t written) const;
  std::size_t memory_of(ValueId value) const;

  const Graph& graph_;
  // By BufferId of the graph: the buffer whose memory it has, if operators that
  // are declared without aliases run as views.
  std::vector<std::size_t> owner_;
  std::vector<Memory> memory_;  // by owner
  // By node: whether its results surely have memory of their own.
  std::vector<bool> is_fresh_;
  std::vector<std::optional<std::uint32_t>> operands_;  // by node
};

}  // namespace shardprop

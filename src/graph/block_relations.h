// BlockRelations gives each element of a graph its operands once copies of blocks
// are inserted. In each row of equal blocks the copies come between the block `here` and
// the block `next`.
//
// Three relations lead out of a block: to the block before it, to the one after it, and
// to what all blocks share. An element of `here` and its counterpart in `next` have
// operands that determine the relation:
//
//   layer 1 reads layer 0's result, layer 2 that of layer 1
//   inserted after layer 1: copy 1 reads layer 1's, copy 2 copy 1's, layer 2 copy 2's
#pragma once

#include "graph/analysis/blocks.h"

#include <shardprop/base/result.h>
#include <shardprop/graph/graph.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {

// Copy 0 of a value is the value of the old graph.
struct CopiedValue {
  ValueId value;
  std::int64_t copy = 0;
};

class BlockRelations {
 public:
  // `counts` has the number of blocks that each run of `blocks` gets, at least its own.
  BlockRelations(const Graph& graph, const Blocks& blocks,
                 std::span<const std::int64_t> counts);

  // Error: kInvalidArgument (an operator outside reads each block of a row).
  Result<void> check_readers() const;

  // Returns the row in which the block is `here`; empty if it is not copied.
  std::optional<std::size_t> copied_row(std::optional<std::size_t> block) const;
  std::size_t num_rows() const { return rows_.size(); }
  const Block& here(std::size_t row) const {
    return blocks_.blocks()[rows_[row].here];
  }
  std::int64_t inserted(std::size_t row) const { return rows_[row].inserted; }

  std::optional<std::size_t> block_of(ValueId value) const;
  // The gradient or update of an input belongs to the block of the input, another
  // output to that of its value.
  std::optional<std::size_t> block_of(const GraphOutput& output) const;
  std::size_t block_of(NodeId node) const { return blocks_.block_of(node); }

  // These return an operand of a copy of a node, and the value of a copy of an output.
  // Error: kInvalidArgument (it does not come from a neighbouring block).
  Result<CopiedValue> operand(const Node& node, std::int64_t copy,
                              std::size_t operand) const;
  Result<CopiedValue> result(const GraphOutput& output,
                             std::int64_t copy) const;

  // Returns names of counterparts in `here` and `next` of a row.
  std::vector<std::pair<std::string, std::string>> names(std::size_t row) const;

 private:
  struct Row {
    std::size_t here = 0;
    std::size_t next = 0;
    std::int64_t inserted = 0;
  };
  const Row* row_of(std::size_t block) const;
  ValueId counterpart(ValueId id, std::size_t from, std::size_t to) const;
  // Empty if the value does not come from a neighbour. The counterpart in `next`
  // reads `of_next`.
  std::optional<CopiedValue> read(const Row& row, std::size_t own,
                                  ValueId value, ValueId of_next,
                                  std::int64_t copy) const;

  const Graph& graph_;
  const Blocks& blocks_;
  std::vector<Row> rows_;
};

}  // namespace shardprop

// `running_graph` makes the program that a training step runs. In its backward
// phase, forward operators may run again, so that their results need not be kept.
//
//   Graph of y = silu(x) @ w with its gradients
//     forward   silu  mm                        kept for the backward phase: x, silu
//     backward  ... mm(grad, silu) ...
//   running_graph(graph, library, {.is_compiled = true})
//     forward   silu  mm                        kept: x
//     backward  ... silu_again  mm(grad, silu_again) ...
//
// A second run is a node of its own (Node::second_run_of) with the operator of the
// first one. It runs before the first backward node that reads one of its results.
// Operators that write into an input of the program, and those whose sizes depend
// on data, never run twice.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/graph/graph.h>
#include <shardprop/ops/op_library.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace shardprop {

// `Recompute` says which operators of a training step run again:
//
//   none                none
//   selective           the rule of torchtitan: those of the repeated blocks, except
//                       attention and every second matmul with a weight
//   selective:megatron  the rule of Megatron-LM: the core attention of the repeated
//                       blocks, which is what turns queries, keys and values into
//                       its result
//   full                those of the repeated blocks, so that only the inputs of each
//                       block are kept
//   full:N              those of the first N blocks of each row
//   modules:GLOB        those of the modules whose path the glob matches, as if
//                       torch.utils.checkpoint wrapped each of them
//   model               those that the model itself runs again: its regions of
//                       torch.utils.checkpoint (Node::checkpoint), except what their
//                       selective policies save
struct Recompute {
  enum class Rule : std::uint8_t {
    kNone,
    kSelective,
    kCoreAttention,
    kFull,
    kModules,
    kModel,
  };
  Rule rule = Rule::kNone;
  // The count in each row of blocks; 0: all. Only for kFull.
  std::int64_t first_blocks = 0;
  std::string modules = {};  // the glob; only for kModules

  // Error: kInvalidArgument.
  static Result<Recompute> parse(std::string_view text);
  friend bool operator==(const Recompute&, const Recompute&) = default;
};
std::string to_string(const Recompute& recompute);  // "none", "full:3"

// Returns the number of blocks of the longest row of equal blocks: full:N with so
// many is full. 0 if no two blocks are equal.
std::int64_t longest_row_of_blocks(const Graph& graph);
// Returns whether a forward node has a mark of torch.utils.checkpoint.
bool is_checkpointed(const Graph& graph);
// Returns whether all rows of equal blocks have equally many blocks.
bool has_rows_of_equal_length(const Graph& graph);

// `Running` says how a program runs.
struct Running {
  // A compiled program also runs operators on elements again that fuse with
  // their readers in the backward phase, as torch.compile does.
  bool is_compiled = false;
  Recompute recompute;
};

// Returns the program as it runs; `graph` itself if nothing runs again. Errors:
// kInvalidArgument (a rule for blocks, and a graph without equal blocks or without
// a backward phase; full:N, and no row of N blocks; a glob that matches no module;
// the rule `model`, and a graph without a mark of torch.utils.checkpoint; a graph
// that is the result of this function).
Result<std::shared_ptr<const Graph>> running_graph(
    std::shared_ptr<const Graph> graph, const OpLibrary& library,
    const Running& running);

}  // namespace shardprop

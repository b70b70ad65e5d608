// `Node` is an operator call with its position in the source program.
#pragma once

#include <shardprop/graph/value.h>
#include <shardprop/ops/op_schema.h>

#include <cstdint>
#include <string>
#include <vector>

namespace shardprop {

// A node is in the forward phase if it is an ancestor of an output that is not
// a gradient.
enum class Phase : std::uint8_t { kForward, kBackward };
std::string_view to_string(Phase phase);  // "forward", "backward"

// `SourceLocation` is the innermost line of the user's program; it is empty if
// none is recorded.
struct SourceLocation {
  std::string file;
  int line = 0;
  std::string function;
  std::string text;  // the line itself

  bool empty() const { return file.empty(); }
};
std::string to_string(const SourceLocation& source);  // "model.py:53"

// `SymbolicArg` is an element of an argument that is not constant; OpSchema has
// its hint.
struct SymbolicArg {
  std::size_t argument = 0;  // index into OpSchema::args
  std::size_t element = 0;   // of a list; 0 for a lone int
  SymExpr value;
};

// `CheckpointMark` says how torch.utils.checkpoint treats a forward node.
struct CheckpointMark {
  // The outermost region that contains the node; empty if none does.
  std::string region;
  // Whether the selective policy of the region saves the node's results.
  bool is_saved = false;
};

struct Node {
  NodeId id;
  std::string name;  // mm_1
  OpSchema op;
  std::vector<ValueId> inputs;   // one per op.inputs
  std::vector<ValueId> outputs;  // one per op.outputs
  std::vector<SymbolicArg> symbolic;

  std::string module_path;   // layers.0.attn; empty at the root or if unknown
  std::string module_class;  // torch.nn.modules.linear.Linear
  SourceLocation source;
  Phase phase = Phase::kForward;
  // The forward node to which a backward node belongs, if recorded.
  NodeId forward_node;
  // The forward node that this backward node runs again (recompute.h).
  NodeId second_run_of;
  // The node of the graph without second runs whose random numbers this node draws.
  // Both runs draw the same ones. Invalid: its own id.
  NodeId draws_as;
  // The operator whose decomposition produced this node, if recorded.
  std::string decomposed_from;
  CheckpointMark checkpoint;

  const std::string& op_name() const { return op.name(); }
  bool runs_again() const { return second_run_of.valid(); }
  // Returns the number that the random numbers of this node depend on.
  NodeId drawn_by() const { return draws_as.valid() ? draws_as : id; }
};

}  // namespace shardprop

// `SpmdProgram` is one program for all ranks of a mesh. It is plain data: local
// operators, collectives, waits and frees in execution order. Values that differ
// between ranks are formulas of the rank's coordinate, so a program for a
// thousand ranks is as large as one for two.
//
//   input  x         f32[8,16]  S(0)          on dp=2
//   input  w         f32[16,4]  S(1)
//   w.0    f32[16,4] R         = all_gather over dp (w)             copy 0
//   mm     f32[8,4]  S(0)      = aten.mm.default(self=x, mat2=w.0)  node mm
//   free   w.0
//   output mm
//
// Every value is produced once. A value with a layout is a tensor of the
// unsharded program: each rank holds its part (placement/local_region.h). A
// value without a layout exists inside the local program of a single operator.
//
// lower() (shardprop/lower/lower.h) makes it from a plan; rank_program.h
// evaluates it for a rank.
#pragma once

#include <shardprop/base/strong_id.h>
#include <shardprop/graph/input_kind.h>
#include <shardprop/graph/output_kind.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/ops/argument.h>
#include <shardprop/placement/layout.h>
#include <shardprop/placement/tensor_meta.h>
#include <shardprop/placement/tensor_spec.h>
#include <shardprop/program/rank_int.h>
#include <shardprop/redistribute/redistribute_plan.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace shardprop {

// Index into SpmdProgram::values; invalid if an optional tensor is absent.
using ProgramValueId = StrongId<struct ProgramValueTag>;

// `ProgramValue` is a tensor of the program, with its layout.
struct ProgramValue {
  // Name, unique in the program. It is the display name for values of the
  // graph, "<name>.<copy>" for a copy, and "<name>.<...>" for intermediate
  // values.
  std::string name;
  // Meta of the full tensor, with the graph's strides; undefined for local
  // values.
  TensorMeta meta;
  Layout layout;  // current layout; without mesh dims for local values
  // The value whose memory this one views; itself if it has its own memory. An
  // evaluator may have to copy if local strides do not allow a view.
  ProgramValueId buffer;
  // The operand into whose memory the producer writes this value, so that no
  // later step may read the operand; invalid if there is none.
  ProgramValueId overwrites = {};

  // Returns whether it is inside an operator's local program, where only the
  // local tensors are known.
  bool is_local() const { return layout.mesh_ndim() == 0; }
};

// `ProgramArgument` is an argument of a local operator. A value that is equal
// on all ranks is an Argument without tensors. Tensors are value ids, and
// numbers that may differ are formulas.
using ProgramArgument =
    std::variant<Argument, ProgramValueId, std::vector<ProgramValueId>, RankInt,
                 std::vector<RankInt>>;

// `ProgramOp` is an operator on local tensors. In addition to PyTorch's
// operators there is
//
//   shardprop.random_bits(seed: value, node: int, word: int) -> i64
//
// Its result has a layout: each element is the `word`-th 32-bit number that
// Philox4x32-10 draws for that element (random_bits.h). Integer and float
// operators turn these bits into the program's random numbers.
struct ProgramOp {
  std::string op;  // aten.mm.default
  // Arguments by declared name; arguments at their defaults are omitted.
  std::vector<std::pair<std::string, ProgramArgument>> args;
  // An id is invalid if the result is not produced.
  std::vector<ProgramValueId> outputs;
};

// `ProgramCollective` is a collective that every group over step.mesh_dims runs
// at the same time, or, of kind kSlice, a local operation on each rank's part.
struct ProgramCollective {
  // Between values with layouts it redistributes from step.src to step.dst.
  // Between local tensors src and dst have no mesh dims. There it is an
  // all_reduce, an all_gather or a reduce_scatter of tensors with one shape on
  // all ranks of a group. An all_gather concatenates the ranks' tensors along
  // dim 0, in mesh order. A reduce_scatter splits their sum in the same way.
  RedistributeStep step;
  ProgramValueId input;
  ProgramValueId output;
};

// `ProgramWait` blocks until the overlapped steps that produce these values are
// complete. The values can be read from there on.
//
//   w.0    f32[16,4] R         = start all_gather over dp (w)       copy 0
//   y      f32[8,16] S(0)      = aten.relu.default(self=x)          node y
//   wait   w.0
struct ProgramWait {
  std::vector<ProgramValueId> values;
};

// `ProgramFree` frees values that no later step reads.
struct ProgramFree {
  std::vector<ProgramValueId> values;
};

// `ProgramStep` is one step of the program: an operator, a collective, a wait or
// a free.
struct ProgramStep {
  std::variant<ProgramOp, ProgramCollective, ProgramFree, ProgramWait> action;
  // Index into SpmdProgram::nodes of the node that this step executes. Copies
  // precede the node. Waits and frees precede or follow it.
  std::size_t node = 0;
  // Index into SpmdProgram::copies, for steps that produce a copy.
  std::optional<std::size_t> copy;
  // False: the outputs are complete when the step ends. True, for collectives
  // and views of a copy: the outputs are in flight until a ProgramWait lists
  // them. Overlapped steps run one after another, next to the other steps. Until
  // the wait, only other overlapped steps read the outputs, and no step frees or
  // overwrites the inputs or the outputs.
  bool is_overlapped = false;
};

// `ProgramNode` is a node of the graph, or the optimizer's step for one
// parameter. The last one, without name and operator, represents the end of the
// program.
struct ProgramNode {
  std::string name;
  std::string op;
  std::string module_path;
  bool is_backward = false;
  std::vector<ProgramValueId> inputs;  // values that the node reads
  // Its results, in order; an id is invalid if all consumers read copies and
  // the result is not produced.
  std::vector<ProgramValueId> outputs;
};

// `ProgramCopy` is a copy of the plan: `from` in a second layout. Its value is
// invalid if it has no consumer.
struct ProgramCopy {
  std::string from;
  ProgramValueId value;
  std::size_t produced_at = 0;  // before the node of this index
  std::size_t freed_at = 0;     // after the node of this index
};

// `ProgramInput` is an input of the program: its value and its role.
struct ProgramInput {
  InputKind kind = InputKind::kUser;
  ProgramValueId value;
  std::string parameter;   // for optimizer state: its parameter
  bool persistent = true;  // buffers: part of the saved state
};

// `ProgramOutput` is an output of the program: its value and its role.
struct ProgramOutput {
  OutputKind kind = OutputKind::kUser;
  ProgramValueId value;
  // Index into SpmdProgram::inputs: the input that an update replaces, or whose
  // gradient this is.
  std::optional<std::size_t> target;
};

struct SpmdProgram {
  std::string graph_name;
  std::string graph_hash;  // 16 hex digits, as in the plan
  DeviceMesh mesh;
  std::string device = "cpu";  // of the graph's tensors, see Graph::device()
  std::vector<ProgramValue> values;
  std::vector<ProgramInput> inputs;
  std::vector<ProgramStep> steps;
  std::vector<ProgramNode> nodes;
  std::vector<ProgramCopy> copies;  // indexed by the plan's copy ids
  std::vector<ProgramOutput> outputs;

  const ProgramValue& value(ProgramValueId id) const {
    return values[id.index()];
  }
};

// Returns mesh, layout and meta of a value. Precondition: the value is not
// local.
TensorSpec spec_of(const SpmdProgram& program, ProgramValueId id);

// Prints the program as above, one line per step.
std::string to_string(const SpmdProgram& program);

}  // namespace shardprop

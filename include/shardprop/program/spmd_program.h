// SpmdProgram: what the ranks of a mesh run, as one program for all of them.
// Plain data: local operators, collectives and frees in the order in which they
// run; what differs on the ranks is a formula of the rank's coordinate, so that
// a program for a thousand ranks is as large as one for two.
//
//   input  x         f32[8,16]  S(0)          on dp=2
//   input  w         f32[16,4]  S(1)
//   w.0    f32[16,4] R         = all_gather over dp (w)             copy 0
//   mm     f32[8,4]  S(0)      = aten.mm.default(self=x, mat2=w.0)  node mm
//   free   w.0
//   output mm
//
// Every value is made once. A value with a layout is a tensor of the unsharded
// program: each rank holds its part (placement/local_region.h). A value without
// one lives inside the local program of a single operator.
//
// Made from a plan by lower() (shardprop/lower/lower.h); evaluated for a rank
// by rank_program.h.
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

// Index into SpmdProgram::values; invalid where an optional tensor is absent.
using ProgramValueId = StrongId<struct ProgramValueTag>;

struct ProgramValue {
  // Unique in the program. Of the graph's values their display name; of a copy
  // "<name>.<copy>"; of what leads there, and inside operators, "<name>.<...>".
  std::string name;
  // Of the whole tensor, strides as in the graph. Meaningless for locals.
  TensorMeta meta;
  Layout layout;  // as it is held; of no mesh dims for locals
  // Whose memory this is a view of; itself if it has its own. Evaluators may
  // have to copy where local strides do not allow a view.
  ProgramValueId storage;

  // Inside an operator's local program: only the local tensors are known.
  bool is_local() const { return layout.mesh_ndim() == 0; }
};

// An argument of a local operator: what is the same on all ranks as it is in an
// operator call (never with tensors in it), tensors by value, numbers that may
// differ as formulas.
using ProgramArgument =
    std::variant<Argument, ProgramValueId, std::vector<ProgramValueId>, RankInt,
                 std::vector<RankInt>>;

// An operator on local tensors. Beside those of PyTorch there is
//
//   shardprop.random_bits(seed: value, node: int, word: int) -> i64
//
// whose result has a layout: each element is the `word`-th 32-bit number that
// Philox4x32-10 draws for it (random_bits.h). Operators on integers and floats
// make of it what the program draws.
struct ProgramOp {
  std::string op;  // aten.mm.default
  // By declared name; arguments at their defaults are left out.
  std::vector<std::pair<std::string, ProgramArgument>> args;
  // Invalid for results that are not produced.
  std::vector<ProgramValueId> outputs;
};

// A collective, run at once by every group over step.mesh_dims; or, of kind
// kSlice, what each rank does to its own part alone.
struct ProgramCollective {
  // Between values with layouts: from step.src to step.dst. Inside a local
  // program src and dst are of no mesh dims; then it is an all_reduce of a
  // tensor that has one shape on every rank of a group, or an all_gather, which
  // lays those of the ranks one behind another along dim 0, in mesh order.
  RedistributeStep step;
  ProgramValueId input;
  ProgramValueId output;
};

// These are taken no more.
struct ProgramFree {
  std::vector<ProgramValueId> values;
};

struct ProgramStep {
  std::variant<ProgramOp, ProgramCollective, ProgramFree> action;
  // Index into SpmdProgram::nodes: for which it runs, or before (copies).
  std::size_t node = 0;
  // Index into SpmdProgram::copies, of steps that make one.
  std::optional<std::size_t> copy;
};

// A node of the graph, or the optimizer's step for one parameter; the last one,
// without name and operator, stands for the end of the program.
struct ProgramNode {
  std::string name;
  std::string op;
  std::string module_path;
  bool is_backward = false;
  std::vector<ProgramValueId> inputs;  // as it takes them
  // Its results, in order; invalid: not made, as all that takes it is a copy.
  std::vector<ProgramValueId> outputs;
};

// A copy of the plan: `from` in a second layout. Its value is invalid where
// nothing takes it.
struct ProgramCopy {
  std::string from;
  ProgramValueId value;
  std::size_t made_at = 0;   // before the node of this index
  std::size_t freed_at = 0;  // after that one
};

struct ProgramInput {
  InputKind kind = InputKind::kUser;
  ProgramValueId value;
  std::string parameter;   // of optimizer state: whose
  bool persistent = true;  // buffers: part of the saved state
};

struct ProgramOutput {
  OutputKind kind = OutputKind::kUser;
  ProgramValueId value;
  // Index into SpmdProgram::inputs. Gradient: of which one. Update: which one
  // it replaces.
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
  std::vector<ProgramCopy> copies;  // by the plan's ids
  std::vector<ProgramOutput> outputs;

  const ProgramValue& value(ProgramValueId id) const {
    return values[id.index()];
  }
};

// Mesh, layout and meta of a value. Precondition: not local.
TensorSpec spec_of(const SpmdProgram& program, ProgramValueId id);

// The program as drawn above, a line a step.
std::string to_string(const SpmdProgram& program);

}  // namespace shardprop

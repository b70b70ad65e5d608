// A program that gathers `w` while `y` is computed:
//
//   w.0 = start all_gather(w); y = -x; wait w.0; free w; z = -w.0; return y, z
#pragma once

#include "support/result_checks.h"

#include <shardprop/program/spmd_program.h>

namespace shardprop::testing {

// These are indices of steps of overlapped_program().
inline constexpr std::size_t kStart = 0;
inline constexpr std::size_t kCompute = 1;
inline constexpr std::size_t kWait = 2;
inline constexpr std::size_t kRead = 3;
inline constexpr std::size_t kFree = 4;

// `x` and `w` are f32[4] on tp=2, `x` replicated and `w` sharded. `w.0` is `w`
// replicated. Temporary memory of the gather: 24 bytes.
inline SpmdProgram overlapped_program() {
  SpmdProgram program;
  program.graph_name = "overlapped";
  program.mesh = value_of(DeviceMesh::parse("tp=2"));
  const Layout sharded = value_of(Layout::parse("S(0)"));
  const Layout replicated = Layout::replicated(1);
  const TensorMeta meta = value_of(TensorMeta::parse("f32[4]"));
  const auto add = [&](const char* name, const Layout& layout) {
    const ProgramValueId id(program.values.size());
    program.values.push_back({name, meta, layout, id});
    return id;
  };
  const ProgramValueId x = add("x", replicated);
  const ProgramValueId w = add("w", sharded);
  const ProgramValueId gathered = add("w.0", replicated);
  const ProgramValueId y = add("y", replicated);
  const ProgramValueId z = add("z", replicated);
  program.inputs.push_back({InputKind::kUser, x, {}, true});
  program.inputs.push_back({InputKind::kParameter, w, {}, true});
  program.nodes = {{"y", "aten.neg.default", {}, false, {x}, {y}},
                   {"z", "aten.neg.default", {}, false, {gathered}, {z}},
                   {}};
  ProgramCollective gather;
  gather.step.kind = CollectiveKind::kAllGather;
  gather.step.mesh_dims = {0};
  gather.step.src = sharded;
  gather.step.dst = replicated;
  gather.step.bytes_per_rank = 8;
  gather.step.peak_bytes = 8 + 16 + 24;
  gather.step.nanoseconds = 30;
  gather.input = w;
  gather.output = gathered;
  const auto negate = [](ProgramValueId from, ProgramValueId to) {
    ProgramOp op;
    op.op = "aten.neg.default";
    op.args = {{"self", from}};
    op.outputs = {to};
    return op;
  };
  program.steps = {{gather, 0, 0, true},
                   {negate(x, y), 0, {}},
                   {ProgramWait{{gathered}}, 0, {}},
                   {negate(gathered, z), 1, {}},
                   {ProgramFree{{gathered}}, 1, {}}};
  program.copies.push_back({"w", gathered, 1, 1});
  program.outputs.push_back({OutputKind::kUser, y, {}});
  program.outputs.push_back({OutputKind::kUser, z, {}});
  return program;
}

}  // namespace shardprop::testing

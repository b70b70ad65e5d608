// Views and how a write to one is carried back to what it views.
#pragma once

#include <shardprop/ops/op_library.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace shardprop {

// For each output of a call, the operand that it is a view of; nullopt where it
// has memory of its own.
using ViewedOperands = std::vector<std::optional<std::size_t>>;

// By the declaration. Where that leaves a copy open (reshape, to, contiguous),
// the result is a view if its strides are those of a view of the operand.
// Precondition: the metas are those of the source program, strides too.
//   ravel(f32[6,8]) f32[48]           a view of operand 0
//   ravel(f32[6,8]{1,6}) f32[48]      a copy
ViewedOperands viewed_operands(const OpSchema& op, const OpLibrary& library);

// What turns (base, written) into the base after its view was written.
struct WriteBack {
  std::string op;                        // empty: the written value is the base
  std::vector<GivenArgument> arguments;  // TensorArgs: see takes_base
  bool takes_base = false;  // operands are base, written; else written alone
};

// The write back through output `output` of `view`. nullopt when no operator
// carries it back: the view repeats elements (expand), has them in windows that
// overlap (unfold), conjugates them, or names places of storage (as_strided).
// Worked example: y = x[2:4]; y.add_(1) ends with slice_scatter(x, y', 0, 2,
// 4).
std::optional<WriteBack> write_back(const OpSchema& view, std::size_t output,
                                    const OpLibrary& library);

}  // namespace shardprop

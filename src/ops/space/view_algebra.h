// Views, and how a write to a view updates its base.
#pragma once

#include <shardprop/ops/op_library.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace shardprop {

// `ViewedOperands` has, for each output of a call, the operand that it is a
// view of; nullopt if it has its own memory.
using ViewedOperands = std::vector<std::optional<std::size_t>>;

// Returns which outputs are views, by the declaration. If the declaration
// allows a copy (reshape, to, contiguous), the result is a view if its strides
// are those of a view of the operand. Precondition: the metas are those of the
// source program, including strides.
//   ravel(f32[6,8]) f32[48]           a view of operand 0
//   ravel(f32[6,8]{1,6}) f32[48]      a copy
ViewedOperands viewed_operands(const OpSchema& op, const OpLibrary& library);

// `WriteBack` is the call that returns the base after a write to its view.
struct WriteBack {
  std::string op;                        // empty: the written value is the base
  std::vector<GivenArgument> arguments;  // TensorArgs: see takes_base
  bool takes_base = false;  // operands: base, written; else written only
};

// Returns the write-back through output `output` of `view`. Returns nullopt if
// no operator expresses it. This holds for a view that repeats elements
// (expand), has overlapping windows (unfold), conjugates, or names memory
// positions (as_strided). Worked example: y = x[2:4]; y.add_(1) ends with
// slice_scatter(x, y', 0, 2, 4).
std::optional<WriteBack> write_back(const OpSchema& view, std::size_t output,
                                    const OpLibrary& library);

}  // namespace shardprop

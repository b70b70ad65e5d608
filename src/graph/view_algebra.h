// Views and how a write to one is carried back to what it views.
#pragma once

#include <shardprop/ops/op_schema.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace shardprop {

// For each entry of op.outputs: the operand that it is a view of, or nullopt.
// Operators that copy only when they must (reshape, to, contiguous) are judged
// by the metas.
std::vector<std::optional<std::size_t>> viewed_operands(const OpSchema& op);

// What turns (base, written) into the base after its view was written.
struct WriteBack {
  std::string op;                        // empty: the written value is the base
  std::vector<GivenArgument> arguments;  // TensorArgs: see takes_base
  bool takes_base = false;  // operands are base, written; else written alone
};

// The write back through output `output` of `view`; nullopt when the view
// cannot be written through.
// Worked example: y = x[2:4]; y.add_(1) ends with slice_scatter(x, y', 0, 2,
// 4).
std::optional<WriteBack> write_back(const OpSchema& view, std::size_t output);

}  // namespace shardprop

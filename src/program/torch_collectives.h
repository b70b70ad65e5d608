// The collectives of PyTorch that programs of ranks call: their declarations,
// and their calls as data. `emit` writes them and `verify` executes them.
//
//   _c10d_functional.all_reduce(x, "sum", "tp")         a group by name
//   c10d_functional.all_reduce(x, "sum", "", [0, 1], 2) a group by its ranks
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/mesh/collective_kind.h>
#include <shardprop/ops/op_library.h>
#include <shardprop/ops/op_schema.h>
#include <shardprop/placement/placement.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

// Returns the declarations of torch 2.13. Its `Any` is written as `str`, the
// type that it takes.
std::span<const char* const> torch_collectives();

// Returns the library with these declarations. Error: kOpRegistered.
Result<std::shared_ptr<const OpLibrary>> with_collectives(
    std::shared_ptr<const OpLibrary> library);

// Returns whether the operator belongs to a library of collectives.
bool is_collective(std::string_view op);
// Returns whether the operator only waits for the result of a collective.
bool is_wait(std::string_view op);

// `TorchCollective` is one call, without its tensors.
struct TorchCollective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  ReduceOp op = ReduceOp::kSum;
  std::string group;  // its name, or its tag if `ranks` are listed
  std::vector<std::int64_t> ranks;         // groups of group_size, in a row
  std::optional<std::int64_t> group_size;  // if the call states it
  std::int64_t root = 0;                   // index in the group
  std::optional<std::vector<std::int64_t>> output_splits;
  std::optional<std::vector<std::int64_t>> input_splits;
};

// Precondition: is_collective() and not is_wait(). Errors: kUnknownOperator (a
// collective that is not simulated), kReduction (an unknown reduction).
Result<TorchCollective> torch_collective(const OpSchema& op);

}  // namespace shardprop

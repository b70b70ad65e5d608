// `OverloadForm` describes how an in-place or out= overload derives from a
// functional overload.
//
//   add_.Tensor(Tensor(a!) self, ...)    add.Tensor; writes self: result 0
//   add.out(..., *, Tensor(a!) out)      add.Tensor; writes out: result 0
#pragma once

#include <shardprop/ops/op_schema.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

namespace shardprop {

struct OverloadForm {
  struct Write {
    std::size_t argument;  // of the mutating overload
    std::size_t result;    // of the functional one
  };
  std::shared_ptr<const FunctionSchema> functional;
  std::vector<Write> writes;
  // For each result of the mutating overload: the result of the functional one,
  // or nullopt if it is a written argument.
  std::vector<std::optional<std::size_t>> results;
};

// Returns the arguments of `op` for `function`, matched by name. Arguments that
// `function` does not declare are dropped with their operands. `kept` receives
// the remaining operands.
Result<OpSchema> rebind(const OpSchema& op,
                        std::shared_ptr<const FunctionSchema> function,
                        std::vector<std::size_t>& kept);

}  // namespace shardprop

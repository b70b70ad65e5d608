// Finding the functional overload that an in-place or out= one derives from, and
// what a call of it writes.
#pragma once

#include <shardprop/ops/op_library.h>
#include <shardprop/ops/overload_form.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace shardprop {

// nullopt when there is none.
std::optional<OverloadForm> overload_form(const FunctionSchema& mutating,
                                          const OpLibrary& library);

// One tensor that a call writes, and which of the tensors that the functional
// overload returns (list elements included) it becomes.
struct TensorWrite {
  std::size_t argument;
  std::size_t operand;
  std::size_t result;
};

// The writes of one call, lists taken apart.
std::vector<TensorWrite> tensor_writes(const OverloadForm& form,
                                       const OpSchema& op);

}  // namespace shardprop

// Finds the functional overload that an in-place or out= overload derives from,
// and the tensors that a call of it writes.
#pragma once

#include <shardprop/ops/op_library.h>
#include <shardprop/ops/overload_form.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace shardprop {

// Returns nullopt if `mutating` has no functional overload.
std::optional<OverloadForm> overload_form(const FunctionSchema& mutating,
                                          const OpLibrary& library);

// `TensorWrite` is one tensor that a call writes. `result` is the index of the
// tensor (list elements included) of the functional overload that it becomes.
struct TensorWrite {
  std::size_t argument;
  std::size_t operand;
  std::size_t result;
};

// Returns the writes of one call, with one entry per list element.
std::vector<TensorWrite> tensor_writes(const OverloadForm& form,
                                       const OpSchema& op);

}  // namespace shardprop

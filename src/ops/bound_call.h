// Binds a call to its operator definition.
#pragma once

#include <shardprop/ops/op_library.h>

#include <optional>
#include <vector>

namespace shardprop {

using Results = std::vector<std::optional<TensorMeta>>;

// These functions implement the members of OpLibrary with similar names.
bool infers(const OpLibrary& library, const FunctionSchema& function);
Result<Results> infer(const OpLibrary& library, const OpSchema& op);
Result<void> check_stated(const OpLibrary& library, const OpSchema& op);

// Returns the index space that an operator definition gives a call of its own
// overload.
Result<IndexSpace> bound_space(const OpLibrary& library, const OpRow& row,
                               const OpSchema& op);
// Returns the index space of an in-place or out= call, derived from that of the
// functional overload.
Result<IndexSpace> derived_space(const OpLibrary& library,
                                 const OverloadForm& form, const OpRow& row,
                                 const OpSchema& op);

}  // namespace shardprop

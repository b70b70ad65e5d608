// Finding the functional overload that an in-place or out= one derives from.
#pragma once

#include <shardprop/ops/op_library.h>
#include <shardprop/ops/overload_form.h>

#include <optional>

namespace shardprop {

// nullopt when there is none.
std::optional<OverloadForm> overload_form(const FunctionSchema& mutating,
                                          const OpLibrary& library);

}  // namespace shardprop

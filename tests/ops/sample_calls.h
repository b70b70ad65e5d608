// Samples small calls of any operator from its declaration until its definition
// accepts one. Shapes are equal, broadcast or share few sizes. Ints could be
// dims, sizes or counts. The result is the accepted call with the most
// shardable factors.
#pragma once

#include <shardprop/ops/op_library.h>

#include <optional>
#include <string_view>

namespace shardprop::testing {

// Returns the call with its outputs filled in; nullopt if none was found. Equal
// libraries give equal calls.
std::optional<OpSchema> sample_call(const OpLibrary& library,
                                    std::string_view name);

// Fills in the outputs: the inferred ones, or those of a pointwise operator
// that only its tag identifies.
Result<void> fill_outputs(OpSchema& op, const OpLibrary& library);

}  // namespace shardprop::testing

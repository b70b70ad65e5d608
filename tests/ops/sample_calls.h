// Samples small calls of any operator from its declaration until its definition
// accepts one. Shapes are equal, broadcast or share few sizes. Ints could be
// dims, sizes or counts. Of the accepted calls it returns the one with the most
// shardable factors.
#pragma once

#include <shardprop/ops/op_library.h>

#include <optional>
#include <string_view>

namespace shardprop::testing {

// The call with its outputs filled in; nullopt where none was found. The same
// for the same library.
std::optional<OpSchema> sample_call(const OpLibrary& library,
                                    std::string_view name);

// Fills in the outputs: the inferred ones, or those of a pointwise operator
// that only its tag identifies.
Result<void> fill_outputs(OpSchema& op, const OpLibrary& library);

}  // namespace shardprop::testing

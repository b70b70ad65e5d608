// Small calls of any operator, drawn from its declaration until its row takes
// one: shapes that are equal, that broadcast or that share few sizes; ints that
// could be dims, sizes or counts. Of those that are taken, the one whose index
// space has most factors that may be sharded.
#pragma once

#include <shardprop/ops/op_library.h>

#include <optional>
#include <string_view>

namespace shardprop::testing {

// The call with its outputs filled in; nullopt where none was found. The same
// for the same library.
std::optional<OpSchema> sample_call(const OpLibrary& library,
                                    std::string_view name);

// Fills in the outputs: those inferred, or those that a pointwise operator
// known by its tag alone would return.
Result<void> fill_outputs(OpSchema& op, const OpLibrary& library);

}  // namespace shardprop::testing

// A call of an operator as text, in the manner of Python:
//
//   aten.mm.default(f32[4,6], f32[6,8])
//   aten.sum.dim_IntList(f32[4,6], [1], keepdim=True, dtype=f64)
//   aten.clone.default(f32[4,6,2,2], memory_format='channels_last')
//
// Tensors are written as their metas, dtypes by name, settings in quotes.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/ops/op_library.h>

#include <string>
#include <string_view>

namespace shardprop::testing {

// Outputs are left for OpLibrary::infer_results(). Errors: kBatchLine, where
// the text is not a call, and those of make_op_schema().
Result<OpSchema> parse_call(std::string_view text, const OpLibrary& library);
// Arguments at their defaults are left out.
std::string to_text(const OpSchema& op);

}  // namespace shardprop::testing

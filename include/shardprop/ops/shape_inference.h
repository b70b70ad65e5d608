// Shape, strides and dtype of what an operator returns.
//
// Covered are the operators of covered_by_shape_inference(): the functional,
// composite and core ATen operators of exported models. For an in-place or
// out= overload the results are the tensors it writes, whatever it computes.
//
//   mm(f32[16,8], f32[8,4])            f32[16,4]
//   sum.dim_IntList(bf16[4,8], [1])    bf16[4]
//
// Dtypes follow PyTorch's promotion (default dtype f32); strides follow its
// memory formats where rules for them are simple, and are contiguous otherwise.
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/ops/op_schema.h>

#include <optional>
#include <string_view>
#include <vector>

namespace shardprop {

// One entry per tensor that the operator returns, list elements each; nullopt
// where its arguments say that it is not produced (output_mask).
// Errors: kNoShapeInference, kShapeMismatch.
Result<std::vector<std::optional<TensorMeta>>> infer_results(
    const OpSchema& op);

// Sets op.outputs and op.output_slots.
void set_results(OpSchema& op, std::vector<std::optional<TensorMeta>> results);

// Whether infer_results knows "aten.mm.default".
bool has_shape_inference(const FunctionSchema& function);

// Operators without their overloads ("aten.mm"), sorted.
std::vector<std::string_view> covered_by_shape_inference();

// The dtype of an operation on two dtypes: promote(bf16, f16) is f32.
DType promote_types(DType a, DType b);

}  // namespace shardprop

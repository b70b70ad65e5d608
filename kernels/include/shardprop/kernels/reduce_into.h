#pragma once

#include <cstdint>
#include <span>

#include <shardprop/kernels/tensor.h>

namespace shardprop::kernels {

// The numbers are part of the C API and never change.
enum class ReduceOp : std::int32_t {
  kSum = 0,
  kProduct = 1,
  kMin = 2,
  kMax = 3,
  kBitwiseAnd = 4,
  kBitwiseOr = 5,
  kBitwiseXor = 6,
};

inline constexpr int kReduceOpCount = 7;

// out[i] = cast((((in[0][i] op in[1][i]) op in[2][i]) ...) * scale), in the
// order of the list, so that every engine and every rank gets the same bits.
//
// f16, bf16 and the f8s accumulate in f32 and are rounded once, at the end. f32
// and f64 accumulate in their own type. Integers wrap around. Min and max give
// NaN if any input is NaN. For bool, sum and max are `or`, product and min are
// `and`. Bitwise ops take integers and bool. Complex numbers are not reduced.
//
// The inputs have one dtype and the shape of `out`. If their type is castable,
// `out` may have any castable type; else it has their type. `out` may be one of
// the inputs (same pointer, strides and type); any other overlap is an error.
// An average is kSum with scale = 1 / count.
//
//   two ranks' gradients, bf16, averaged into f32:
//   {.op = ReduceOp::kSum, .inputs = {g0, g1}, .out = g, .scale = 0.5}
//
// kInvalidArgument: an empty list; shapes or dtypes that disagree; an op that
// the type does not have. kUnsupported, kOverlap: as chunk_cat.
struct ReduceIntoArgs {
  ReduceOp op = ReduceOp::kSum;
  std::span<const TensorView> inputs;
  MutableTensorView out;
  double scale = 1.0;
};

}  // namespace shardprop::kernels

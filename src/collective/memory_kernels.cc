#include "collective/memory_kernels.h"

#include <shardprop/base/error.h>
#include <shardprop/collective/kernel_view.h>
#include <shardprop/collective/memory_ops.h>

#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace collective {
namespace {

kernels::ReduceOp kernel_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      return kernels::ReduceOp::kSum;
    case ReduceOp::kProduct:
      return kernels::ReduceOp::kProduct;
    case ReduceOp::kMin:
      return kernels::ReduceOp::kMin;
    case ReduceOp::kMax:
      return kernels::ReduceOp::kMax;
    case ReduceOp::kBand:
      return kernels::ReduceOp::kBitwiseAnd;
    case ReduceOp::kBor:
      return kernels::ReduceOp::kBitwiseOr;
    case ReduceOp::kBxor:
      return kernels::ReduceOp::kBitwiseXor;
  }
  throw InternalError("a reduce op outside its enumeration");
}

}  // namespace

DType part_of(DType dtype) {
  switch (dtype) {
    case DType::kC32:
      return DType::kF16;
    case DType::kC64:
      return DType::kF32;
    case DType::kC128:
      return DType::kF64;
    default:
      return dtype;
  }
}

LocalTensor as_parts(const LocalTensor& tensor) {
  if (!is_complex(tensor.dtype())) return tensor;
  Dims sizes = tensor.sizes();
  Dims strides = tensor.strides();
  for (std::int64_t& stride : strides) stride *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  return LocalTensor::wrap(tensor.data(), std::move(sizes), std::move(strides),
                           part_of(tensor.dtype()), tensor.owner(),
                           tensor.device());
}

Result<void> check_device(Device device, const LocalTensor& from,
                          const LocalTensor& to) {
  for (const LocalTensor* tensor : {&from, &to}) {
    if (tensor->device() == device || tensor->numel() == 0) continue;
    return fail(ErrorCode::kCollectiveDevice,
                to_string(*tensor) + " is on " + to_string(tensor->device()) +
                    ", what is to work on it is for " + to_string(device),
                "bring it there");
  }
  return {};
}

Result<void> checked_kernel(const kernels::Status& status) {
  switch (status.code()) {
    case kernels::StatusCode::kOk:
      return {};
    case kernels::StatusCode::kCuda:
    case kernels::StatusCode::kUnsupported:
      return fail(ErrorCode::kEngine, status.message());
    case kernels::StatusCode::kOverlap:
      return fail(ErrorCode::kCollectiveOverlap, status.message());
    case kernels::StatusCode::kOutOfMemory:
      return fail(ErrorCode::kOutOfMemory, status.message());
    default:
      throw InternalError("a kernel refuses its arguments: " +
                          status.message());
  }
}

Result<void> copy_by(const CopyKernel& kernel, const LocalTensor& from,
                     const LocalTensor& to, double scale) {
  if (from.numel() == 0) return {};
  if (scale == 1) {
    if (from.same_view(to)) return {};
    return checked_kernel(
        kernel({.in = kernel_view(from), .out = mutable_kernel_view(to)}));
  }
  const LocalTensor in = as_parts(from);
  const LocalTensor out = as_parts(to);
  return checked_kernel(kernel({.in = kernel_view(in),
                                .out = mutable_kernel_view(out),
                                .scale = scale}));
}

Result<void> reduce_by(const ReduceKernel& kernel, ReduceOp op,
                       std::span<const LocalTensor> terms,
                       const LocalTensor& out, double scale) {
  if (out.numel() == 0) return {};
  std::vector<LocalTensor> parts;
  if (is_complex(out.dtype())) {
    parts.reserve(terms.size());
    for (const LocalTensor& term : terms) parts.push_back(as_parts(term));
    terms = parts;
  }
  const LocalTensor into = as_parts(out);
  std::vector<kernels::TensorView> views;
  views.reserve(terms.size());
  for (const LocalTensor& term : terms) views.push_back(kernel_view(term));
  if (op == ReduceOp::kAvg) scale /= static_cast<double>(terms.size());
  return checked_kernel(kernel({.op = kernel_op(op),
                                .inputs = views,
                                .out = mutable_kernel_view(into),
                                .scale = scale}));
}

}  // namespace collective

bool is_cast(DType from, DType to) {
  return kernels::is_castable(carried_as(from)) &&
         kernels::is_castable(carried_as(to));
}

bool is_scalable(DType dtype) {
  const DType part = collective::part_of(dtype);
  return kernels::is_castable(carried_as(part)) || part == DType::kF64;
}

}  // namespace shardprop

#include <shardprop/collective/kernel_view.h>

#include <shardprop/kernels/cpu.h>

namespace shardprop {
namespace {

std::span<const std::int64_t> span_of(const Dims& dims) {
  return {dims.data(), dims.size()};
}

}  // namespace

kernels::DType carried_as(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return kernels::DType::kBool;
    case DType::kU8:
    case DType::kF8E4M3FNUZ:
    case DType::kF8E5M2FNUZ:
    case DType::kF8E8M0FNU:
      return kernels::DType::kUInt8;
    case DType::kI8:
      return kernels::DType::kInt8;
    case DType::kU16:
    case DType::kI16:
      return kernels::DType::kInt16;
    case DType::kU32:
    case DType::kI32:
    case DType::kC32:
      return kernels::DType::kInt32;
    case DType::kU64:
    case DType::kI64:
      return kernels::DType::kInt64;
    case DType::kF8E4M3FN:
      return kernels::DType::kFloat8E4M3FN;
    case DType::kF8E5M2:
      return kernels::DType::kFloat8E5M2;
    case DType::kF16:
      return kernels::DType::kFloat16;
    case DType::kBF16:
      return kernels::DType::kBFloat16;
    case DType::kF32:
      return kernels::DType::kFloat32;
    case DType::kF64:
      return kernels::DType::kFloat64;
    case DType::kC64:
      return kernels::DType::kComplex64;
    case DType::kC128:
      return kernels::DType::kComplex128;
  }
  throw InternalError("a dtype outside its enumeration");
}

kernels::TensorView kernel_view(const LocalTensor& tensor) {
  return {tensor.data(), carried_as(tensor.dtype()), span_of(tensor.sizes()),
          span_of(tensor.strides())};
}

kernels::MutableTensorView mutable_kernel_view(const LocalTensor& tensor) {
  return {tensor.data(), carried_as(tensor.dtype()), span_of(tensor.sizes()),
          span_of(tensor.strides())};
}

Result<void> copy(const LocalTensor& from, const LocalTensor& to) {
  if (from.device().type != DeviceType::kHost ||
      to.device().type != DeviceType::kHost) {
    return fail(ErrorCode::kCollectiveDevice,
                "a copy on the host from " + to_string(from.device()) + " to " +
                    to_string(to.device()));
  }
  if (from.sizes() != to.sizes() || from.dtype() != to.dtype()) {
    return fail(ErrorCode::kCollectiveCall,
                "a copy of " + to_string(from) + " to " + to_string(to));
  }
  if (from.same_view(to)) return {};
  const kernels::Status status = kernels::cpu::strided_copy(
      {.in = kernel_view(from), .out = mutable_kernel_view(to)});
  switch (status.code()) {
    case kernels::StatusCode::kOk:
      return {};
    case kernels::StatusCode::kOverlap:
      return fail(ErrorCode::kCollectiveOverlap, status.message());
    default:
      return fail(ErrorCode::kCollectiveCall, status.message());
  }
}

}  // namespace shardprop

#include "collective/reduction.h"

#include <shardprop/base/error.h>
#include <shardprop/collective/kernel_view.h>
#include <shardprop/kernels/cpu.h>

#include <utility>
#include <vector>

namespace shardprop::collective {
namespace {

bool is_wide_unsigned(DType dtype) {
  return dtype == DType::kU16 || dtype == DType::kU32 || dtype == DType::kU64;
}

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

// Complex numbers as pairs of floats.
LocalTensor as_real(const LocalTensor& tensor) {
  Dims sizes = tensor.sizes();
  Dims strides = tensor.strides();
  for (std::int64_t& stride : strides) stride *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  const DType part = tensor.dtype() == DType::kC64 ? DType::kF32 : DType::kF64;
  return LocalTensor::wrap(tensor.data(), std::move(sizes), std::move(strides),
                           part);
}

}  // namespace

bool reduces(ReduceOp op, DType dtype) {
  if (!is_defined(op, dtype)) return false;
  const bool bitwise =
      op == ReduceOp::kBand || op == ReduceOp::kBor || op == ReduceOp::kBxor;
  switch (dtype) {
    case DType::kF8E4M3FNUZ:
    case DType::kF8E5M2FNUZ:
    case DType::kF8E8M0FNU:
    case DType::kC32:
      return false;
    case DType::kC64:
    case DType::kC128:
      return op == ReduceOp::kSum || op == ReduceOp::kAvg;
    default:
      // Wrapping sums and bits are the same for signed numbers.
      return !is_wide_unsigned(dtype) || bitwise || op == ReduceOp::kSum ||
             op == ReduceOp::kProduct;
  }
}

kernels::Status reduce_terms(ReduceOp op, std::span<const LocalTensor> terms,
                             const LocalTensor& out) {
  return reduce_terms(op, terms, out, [](const kernels::ReduceIntoArgs& args) {
    return kernels::cpu::reduce_into(args);
  });
}

kernels::Status reduce_terms(ReduceOp op, std::span<const LocalTensor> terms,
                             const LocalTensor& out,
                             const ReduceKernel& kernel) {
  if (is_complex(out.dtype())) {
    std::vector<LocalTensor> parts;
    parts.reserve(terms.size());
    for (const LocalTensor& term : terms) parts.push_back(as_real(term));
    return reduce_terms(op, parts, as_real(out), kernel);
  }
  std::vector<kernels::TensorView> views;
  views.reserve(terms.size());
  for (const LocalTensor& term : terms) views.push_back(kernel_view(term));
  const double scale =
      op == ReduceOp::kAvg ? 1.0 / static_cast<double>(terms.size()) : 1.0;
  return kernel({.op = kernel_op(op),
                 .inputs = views,
                 .out = mutable_kernel_view(out),
                 .scale = scale});
}

kernels::Status scale_into(const LocalTensor& in, double factor,
                           const LocalTensor& out) {
  if (is_complex(in.dtype())) {
    return scale_into(as_real(in), factor, as_real(out));
  }
  return kernels::cpu::strided_copy({.in = kernel_view(in),
                                     .out = mutable_kernel_view(out),
                                     .scale = factor});
}

}  // namespace shardprop::collective

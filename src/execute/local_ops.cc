#include "execute/local_ops.h"

#include "base/try.h"

#include <shardprop/collective/kernel_view.h>
#include <shardprop/kernels/cpu.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

namespace shardprop::execute {
namespace {

bool is_castable(DType dtype) {
  return kernels::is_castable(carried_as(dtype));
}

// The reals that complex numbers are pairs of.
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

Result<void> checked(const kernels::Status& status) {
  if (status.ok()) return {};
  if (status.code() == kernels::StatusCode::kCuda) {
    return fail(ErrorCode::kEngine, status.message());
  }
  throw InternalError("a packing kernel refuses its arguments: " +
                      status.message());
}

LocalTensor view(const LocalTensor& tensor, const RegionCopy& copy,
                 const Dims& start, Dims CopyAxis::* step) {
  const Dims& strides = tensor.strides();
  const auto offset_of = [&](const Dims& index) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < index.size(); ++d) {
      offset += index[d] * strides[d];
    }
    return offset;
  };
  Dims sizes;
  Dims steps;
  for (const CopyAxis& axis : copy.axes) {
    sizes.push_back(axis.size);
    steps.push_back(offset_of(axis.*step));
  }
  std::byte* data = tensor.data_as<std::byte>() +
                    offset_of(start) * item_size(tensor.dtype());
  return LocalTensor::wrap(data, std::move(sizes), std::move(steps),
                           tensor.dtype(), tensor.owner(), tensor.device());
}

}  // namespace

bool is_cast(DType from, DType to) {
  return is_castable(from) && is_castable(to);
}

bool is_scalable(DType dtype) {
  const DType part = part_of(dtype);
  return is_castable(part) || part == DType::kF64;
}

LocalTensor from_view(const LocalTensor& tensor, const RegionCopy& copy) {
  return view(tensor, copy, copy.from, &CopyAxis::from);
}

LocalTensor to_view(const LocalTensor& tensor, const RegionCopy& copy) {
  return view(tensor, copy, copy.to, &CopyAxis::to);
}

Result<void> copy_all(const LocalTensor& from, const LocalTensor& to,
                      double scale) {
  if (from.numel() == 0) return {};
  const bool parts = scale != 1;
  const LocalTensor in = parts ? as_parts(from) : from;
  const LocalTensor out = parts ? as_parts(to) : to;
  return checked(kernels::cpu::strided_copy({.in = kernel_view(in),
                                             .out = mutable_kernel_view(out),
                                             .scale = scale}));
}

Result<void> run_copies(const RegionCopies& copies, const LocalTensor& from,
                        const LocalTensor& to, double scale) {
  for (const RegionCopy& copy : copies) {
    SP_CHECK(copy_all(from_view(from, copy), to_view(to, copy), scale));
  }
  return {};
}

Result<void> scale_in_place(const LocalTensor& tensor, double scale) {
  if (tensor.numel() == 0) return {};
  const LocalTensor parts = as_parts(tensor);
  const kernels::TensorView in[] = {kernel_view(parts)};
  return checked(kernels::cpu::reduce_into({.op = kernels::ReduceOp::kSum,
                                            .inputs = in,
                                            .out = mutable_kernel_view(parts),
                                            .scale = scale}));
}

namespace {

// The bits of 1, little end first.
std::array<std::byte, 16> one(DType dtype) {
  std::array<std::byte, 16> bits{};
  const auto put = [&](auto value) {
    std::memcpy(bits.data(), &value, sizeof(value));
    return bits;
  };
  switch (dtype) {
    case DType::kF8E4M3FN:
      return put(std::uint8_t{0x38});
    case DType::kF8E5M2:
      return put(std::uint8_t{0x3c});
    case DType::kF8E4M3FNUZ:
    case DType::kF8E5M2FNUZ:
      return put(std::uint8_t{0x40});
    case DType::kF8E8M0FNU:
      return put(std::uint8_t{0x7f});
    case DType::kF16:
    case DType::kC32:
      return put(std::uint16_t{0x3c00});
    case DType::kBF16:
      return put(std::uint16_t{0x3f80});
    case DType::kF32:
    case DType::kC64:
      return put(1.0F);
    case DType::kF64:
    case DType::kC128:
      return put(1.0);
    default:
      return put(std::uint8_t{1});
  }
}

}  // namespace

Result<void> fill_neutral(const LocalTensor& tensor, ReduceOp op) {
  if (tensor.numel() == 0) return {};
  const auto value = op == ReduceOp::kProduct ? one(tensor.dtype())
                                              : std::array<std::byte, 16>{};
  return checked(kernels::cpu::fill(
      {.out = mutable_kernel_view(tensor), .value = value.data()}));
}

}  // namespace shardprop::execute

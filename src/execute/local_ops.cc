#include "execute/local_ops.h"

#include "base/try.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

namespace shardprop::execute {
namespace {

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

LocalTensor from_view(const LocalTensor& tensor, const RegionCopy& copy) {
  return view(tensor, copy, copy.from, &CopyAxis::from);
}

LocalTensor to_view(const LocalTensor& tensor, const RegionCopy& copy) {
  return view(tensor, copy, copy.to, &CopyAxis::to);
}

Result<void> run_copies(MemoryOps& memory, const RegionCopies& copies,
                        const LocalTensor& from, const LocalTensor& to,
                        double scale) {
  for (const RegionCopy& copy : copies) {
    SP_CHECK(memory.copy(from_view(from, copy), to_view(to, copy), scale));
  }
  return {};
}

Result<void> scale_in_place(MemoryOps& memory, const LocalTensor& tensor,
                            double scale) {
  return memory.reduce(ReduceOp::kSum, {&tensor, 1}, tensor, scale);
}

namespace {

// The bits of 1 in little-endian order.
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

Result<void> fill_neutral(MemoryOps& memory, const LocalTensor& tensor,
                          ReduceOp op) {
  const auto value = op == ReduceOp::kProduct ? one(tensor.dtype())
                                              : std::array<std::byte, 16>{};
  return memory.fill(tensor, value.data());
}

}  // namespace shardprop::execute

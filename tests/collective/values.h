// Elements of any dtype as plain numbers, and what collectives must make of
// them, spelled out element by element.
#pragma once

#include <doctest/doctest.h>
#include <shardprop/collective/communicator.h>
#include <shardprop/collective/kernel_view.h>
#include <shardprop/collective/local_tensor.h>
#include <shardprop/kernels/cpu.h>
#include <shardprop/placement/placement.h>

#include "support/result_checks.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

namespace shardprop::testing {

// The dtypes that collectives carry and reduce.
inline constexpr DType kReducedDTypes[] = {
    DType::kF64,      DType::kF32,    DType::kF16, DType::kBF16,
    DType::kF8E4M3FN, DType::kF8E5M2, DType::kI8,  DType::kI16,
    DType::kI32,      DType::kI64,    DType::kU8,  DType::kBool};

using Numbers = std::vector<double>;

inline bool is_small_float(DType dtype) {
  return is_floating(dtype) && dtype != DType::kF64;
}

template <class Visit>
void visit_type(DType dtype, Visit&& visit) {
  switch (dtype) {
    case DType::kF64:
      return visit(double{});
    case DType::kF32:
      return visit(float{});
    case DType::kI8:
      return visit(std::int8_t{});
    case DType::kI16:
      return visit(std::int16_t{});
    case DType::kI32:
      return visit(std::int32_t{});
    case DType::kI64:
      return visit(std::int64_t{});
    case DType::kU8:
      return visit(std::uint8_t{});
    case DType::kBool:
      return visit(bool{});
    default:
      FAIL("no plain type");
  }
}

inline LocalTensor packed(const LocalTensor& tensor) {
  LocalTensor out =
      value_of(LocalTensor::empty(tensor.sizes(), tensor.dtype()));
  if (tensor.numel() > 0) REQUIRE(copy(tensor, out).has_value());
  return out;
}

// The tensor in the memory that the communicator exchanges, and back on the
// host: itself where that is the host's.
inline LocalTensor moved_to(Communicator& c, const LocalTensor& tensor) {
  MemoryOps& memory = c.memory_ops();
  if (memory.device().type == DeviceType::kHost) return tensor;
  const LocalTensor dense = packed(tensor);
  const LocalTensor out = value_of(c.allocate(dense.sizes(), dense.dtype()));
  if (dense.numel() > 0) REQUIRE(memory.transfer(dense, out).has_value());
  return out;
}

inline LocalTensor moved_back(Communicator& c, const LocalTensor& tensor) {
  MemoryOps& memory = c.memory_ops();
  if (memory.device().type == DeviceType::kHost) return tensor;
  LocalTensor out =
      value_of(LocalTensor::empty(tensor.sizes(), tensor.dtype()));
  if (tensor.numel() == 0) return out;
  LocalTensor dense = tensor;
  if (!tensor.is_contiguous()) {
    dense = value_of(c.allocate(tensor.sizes(), tensor.dtype()));
    REQUIRE(memory.copy(tensor, dense).has_value());
  }
  REQUIRE(memory.transfer(dense, out).has_value());
  return out;
}

// Row-major; the kernels' casts, which have tests of their own, carry the
// small floats.
inline Numbers numbers_of(const LocalTensor& tensor) {
  const LocalTensor dense = packed(tensor);
  Numbers out(static_cast<std::size_t>(dense.numel()));
  if (out.empty()) return out;
  if (is_small_float(dense.dtype())) {
    std::vector<float> floats(out.size());
    const std::int64_t count[] = {dense.numel()};
    REQUIRE(kernels::cpu::strided_copy(
                {.in = {dense.data(), carried_as(dense.dtype()), count},
                 .out = {floats.data(), kernels::DType::kFloat32, count}})
                .ok());
    std::copy(floats.begin(), floats.end(), out.begin());
    return out;
  }
  visit_type(dense.dtype(), [&](auto zero) {
    const auto* at = dense.data_as<decltype(zero)>();
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = static_cast<double>(at[i]);
    }
  });
  return out;
}

// The tensor of these numbers, rounded as the dtype asks.
inline LocalTensor tensor_of(const Numbers& numbers, Dims sizes, DType dtype) {
  LocalTensor out = value_of(LocalTensor::empty(std::move(sizes), dtype));
  REQUIRE(out.numel() == static_cast<std::int64_t>(numbers.size()));
  if (numbers.empty()) return out;
  if (is_small_float(dtype)) {
    const std::vector<float> floats(numbers.begin(), numbers.end());
    const std::int64_t count[] = {out.numel()};
    REQUIRE(kernels::cpu::strided_copy(
                {.in = {floats.data(), kernels::DType::kFloat32, count},
                 .out = {out.data(), carried_as(dtype), count}})
                .ok());
    return out;
  }
  visit_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      out.data_as<T>()[i] = static_cast<T>(numbers[i]);
    }
  });
  return out;
}

// The elements of member `rank`: small integers that every dtype can hold,
// other ones on every rank.
inline Numbers some_numbers(std::int64_t rank, std::int64_t count,
                            DType dtype) {
  Numbers out(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t mixed = (i * 7 + rank * 5 + i / 3 * rank) % 7;
    double value = static_cast<double>(mixed - 3);
    if (dtype == DType::kU8) value = static_cast<double>(mixed + 1);
    if (dtype == DType::kBool) value = mixed % 2 == 0 ? 1 : 0;
    out[static_cast<std::size_t>(i)] = value;
  }
  return out;
}

inline LocalTensor some_tensor(std::int64_t rank, const Dims& sizes,
                               DType dtype) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return tensor_of(some_numbers(rank, count, dtype), sizes, dtype);
}

inline bool same_bits(const LocalTensor& a, const LocalTensor& b) {
  if (a.dtype() != b.dtype() || a.sizes() != b.sizes()) return false;
  if (a.numel() == 0) return true;
  return std::memcmp(packed(a).data(), packed(b).data(),
                     static_cast<std::size_t>(a.bytes())) == 0;
}

// One element, over the members in order: the definition.
inline double reduced(ReduceOp op, DType dtype, const Numbers& terms) {
  if (is_floating(dtype)) {
    const bool wide = dtype == DType::kF64;
    double sum = terms[0];
    for (std::size_t i = 1; i < terms.size(); ++i) {
      switch (op) {
        case ReduceOp::kSum:
        case ReduceOp::kAvg:
          sum += terms[i];
          break;
        case ReduceOp::kProduct:
          sum *= terms[i];
          break;
        case ReduceOp::kMin:
          sum = std::min(sum, terms[i]);
          break;
        default:
          sum = std::max(sum, terms[i]);
      }
      if (!wide) sum = static_cast<double>(static_cast<float>(sum));
    }
    if (op != ReduceOp::kAvg) return sum;
    const double share = 1.0 / static_cast<double>(terms.size());
    if (wide) return sum * share;
    return static_cast<double>(static_cast<float>(sum) *
                               static_cast<float>(share));
  }
  auto all = static_cast<std::int64_t>(terms[0]);
  for (std::size_t i = 1; i < terms.size(); ++i) {
    const auto term = static_cast<std::int64_t>(terms[i]);
    switch (op) {
      case ReduceOp::kSum:
        all += term;
        break;
      case ReduceOp::kProduct:
        all *= term;
        break;
      case ReduceOp::kMin:
        all = std::min(all, term);
        break;
      case ReduceOp::kMax:
        all = std::max(all, term);
        break;
      case ReduceOp::kBand:
        all &= term;
        break;
      case ReduceOp::kBor:
        all |= term;
        break;
      case ReduceOp::kBxor:
        all ^= term;
        break;
      case ReduceOp::kAvg:
        FAIL("integers have no average");
    }
  }
  if (dtype == DType::kBool) return all != 0 ? 1 : 0;
  // As the element type wraps.
  double wrapped = 0;
  visit_type(dtype, [&](auto zero) {
    wrapped = static_cast<double>(static_cast<decltype(zero)>(all));
  });
  return wrapped;
}

// op over the members' tensors, element by element.
inline LocalTensor reduced(ReduceOp op, const std::vector<LocalTensor>& terms) {
  std::vector<Numbers> numbers;
  for (const LocalTensor& term : terms) numbers.push_back(numbers_of(term));
  Numbers out(numbers[0].size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    Numbers at;
    for (const Numbers& n : numbers) at.push_back(n[i]);
    out[i] = reduced(op, terms[0].dtype(), at);
  }
  return tensor_of(out, terms[0].sizes(), terms[0].dtype());
}

// Returns the concatenation of `parts` along a dim.
inline LocalTensor concatenated(const std::vector<LocalTensor>& parts,
                                int dim) {
  Dims sizes = parts[0].sizes();
  auto& length = sizes[static_cast<std::size_t>(dim)];
  length = 0;
  for (const LocalTensor& part : parts) length += part.size(dim);
  const LocalTensor out = value_of(LocalTensor::empty(sizes, parts[0].dtype()));
  std::int64_t at = 0;
  for (const LocalTensor& part : parts) {
    if (part.numel() > 0) {
      REQUIRE(copy(part, out.narrow(dim, at, part.size(dim))).has_value());
    }
    at += part.size(dim);
  }
  return out;
}

}  // namespace shardprop::testing

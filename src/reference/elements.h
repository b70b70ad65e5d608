// Elements of tensors as the numbers that the reference computes with: doubles,
// 64-bit integers (bools and every integer), complex doubles.
#pragma once

#include <shardprop/reference/tensor.h>

#include <complex>
#include <cstdint>
#include <vector>

namespace shardprop::reference {

using Complex = std::complex<double>;

enum class Domain : std::uint8_t { kReal, kInteger, kComplex };
Domain domain_of(DType dtype);

// Row-major values. T is double, std::int64_t or Complex. A CallError where the
// dtype is none that the reference computes in (f8).
template <class T>
std::vector<T> values(const Tensor& tensor);
// A new row-major tensor: floats are rounded, integers wrap, anything but zero
// is true.
template <class T>
Tensor tensor_of(const Dims& shape, DType dtype, const std::vector<T>& from);
// Writes row-major values into a view. Precondition: as many as it holds.
template <class T>
void write(const Tensor& to, const std::vector<T>& from);

// A copy in another dtype, row-major.
Tensor cast(const Tensor& tensor, DType dtype);
// `to` takes the elements of `from`, cast. Precondition: one shape.
void copy_into(const Tensor& to, const Tensor& from);
// Row-major; the tensor itself where it is so already.
Tensor contiguous(const Tensor& tensor);

// The same memory seen under a shape that it broadcasts to; a CallError where it
// does not.
Tensor broadcast_to(const Tensor& tensor, const Dims& shape);

// The value as the dtype holds it: 0.1 in f32.
double rounded(double value, DType dtype);

// Calls f with the element offset of every index of `shape`, row-major.
template <class F>
void for_each_offset(const Dims& shape, const Dims& strides, F&& f) {
  const std::size_t rank = shape.size();
  for (const std::int64_t size : shape) {
    if (size == 0) return;
  }
  Dims at(rank, 0);
  std::int64_t offset = 0;
  while (true) {
    f(offset);
    std::size_t d = rank;
    while (d > 0) {
      --d;
      offset += strides[d];
      if (++at[d] < shape[d]) break;
      offset -= strides[d] * shape[d];
      at[d] = 0;
      if (d == 0) return;
    }
    if (rank == 0) return;
  }
}

}  // namespace shardprop::reference

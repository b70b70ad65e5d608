// Converts elements of tensors to the numbers of the reference: doubles, 64-bit
// integers (bools and every integer), and complex doubles.
#pragma once

#include <shardprop/reference/tensor.h>

#include <complex>
#include <cstdint>
#include <vector>

namespace shardprop::reference {

using Complex = std::complex<double>;

enum class Domain : std::uint8_t { kReal, kInteger, kComplex };
Domain domain_of(DType dtype);

// Returns the values in row-major order. T is double, std::int64_t or Complex.
// Throws CallError if the reference does not compute in the dtype (f8).
template <class T>
std::vector<T> values(const Tensor& tensor);
// Returns a new row-major tensor. Floats are rounded, integers wrap, and every
// value except zero becomes true.
template <class T>
Tensor tensor_of(const Dims& shape, DType dtype, const std::vector<T>& from);
// Writes row-major values into a view. Precondition: the view has as many
// elements.
template <class T>
void write(const Tensor& to, const std::vector<T>& from);

// Returns a row-major copy in another dtype.
Tensor cast(const Tensor& tensor, DType dtype);
// Copies the elements of `from` to `to` and casts them. Precondition: the
// shapes are equal.
void copy_into(const Tensor& to, const Tensor& from);
// Returns a row-major tensor: the tensor itself if it is row-major already.
Tensor contiguous(const Tensor& tensor);

// Returns a view of the tensor, broadcast to a shape. Throws CallError if it
// does not broadcast to the shape.
Tensor broadcast_to(const Tensor& tensor, const Dims& shape);

// Returns the value rounded to the dtype: 0.1 in f32.
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

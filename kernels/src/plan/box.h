#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <shardprop/kernels/tensor.h>

#include "operand.h"

namespace shardprop::kernels {

// A box may split one tensor dim in two: chunks, and positions within a chunk.
inline constexpr int kMaxBoxDims = kMaxDims + 1;

struct BoxDim {
  std::int64_t size;
  std::int64_t dst;  // stride in bytes
  std::int64_t src;  // stride in bytes
};

// A rectangle of elements to move from one strided place to another, or to fill
// if `src` is null. Every kernel but reduce_into works on boxes. Only the first
// `rank` dims are used.
struct Box {
  std::byte* dst;
  const std::byte* src;
  int rank;
  std::array<BoxDim, kMaxBoxDims> dims;

  void add(std::int64_t size, std::int64_t dst_stride,
           std::int64_t src_stride) {
    dims[rank++] = {size, dst_stride, src_stride};
  }
  std::int64_t count() const;
};

// The boxes of one call. Each is stored with only the dims that it has, because
// lists are long and few boxes need all dims.
class BoxList {
 public:
  // Reserves memory for this many boxes of two dims, rows of adjacent elements.
  void reserve(std::size_t boxes);
  void push_back(const Box& box);
  bool empty() const { return heads_.empty(); }
  std::size_t size() const { return heads_.size(); }
  Box operator[](std::size_t i) const;

 private:
  struct Head {
    std::byte* dst;
    const std::byte* src;
    std::size_t first_dim;
    int rank;
  };
  std::vector<Head> heads_;
  std::vector<BoxDim> dims_;
};

// Simplifies a box: strides in `dst` become positive and descending, dims of
// size 1 are dropped, and dims that continue each other are merged.
//   3x4 row-major from 3x4 row-major:    {12: item, item}
//   3x4 row-major from 3x4 column-major: {3: 4 item, item}, {4: item, 3 item}
void simplify(Box& box);

// Appends the simplified box that writes all of `out` from `src`, with strides
// in bytes. If `src` is null, the box is a fill. Precondition: `out` is not
// empty.
void append_copy_box(const Operand& out, const std::byte* src,
                     std::span<const std::int64_t> src_strides, BoxList* boxes);

}  // namespace shardprop::kernels

#include "box.h"

#include <algorithm>

namespace shardprop::kernels {

std::int64_t Box::count() const {
  std::int64_t product = 1;
  for (int i = 0; i < rank; ++i) product *= dims[i].size;
  return product;
}

void BoxList::reserve(std::size_t boxes) {
  heads_.reserve(boxes);
  dims_.reserve(2 * boxes);
}

void BoxList::push_back(const Box& box) {
  heads_.push_back({box.dst, box.src, dims_.size(), box.rank});
  dims_.insert(dims_.end(), box.dims.begin(), box.dims.begin() + box.rank);
}

Box BoxList::operator[](std::size_t i) const {
  const Head& head = heads_[i];
  Box box;
  box.dst = head.dst;
  box.src = head.src;
  box.rank = head.rank;
  std::copy_n(dims_.data() + head.first_dim, head.rank, box.dims.begin());
  return box;
}

void simplify(Box& box) {
  int kept = 0;
  for (int i = 0; i < box.rank; ++i) {
    BoxDim dim = box.dims[i];
    if (dim.size == 1) continue;
    if (dim.dst < 0) {
      box.dst += dim.dst * (dim.size - 1);
      dim.dst = -dim.dst;
      if (box.src != nullptr) box.src += dim.src * (dim.size - 1);
      dim.src = -dim.src;
    }
    // The insertion sort keeps the given order, usually row-major, among equal
    // strides.
    int at = kept++;
    for (; at > 0 && box.dims[at - 1].dst < dim.dst; --at) {
      box.dims[at] = box.dims[at - 1];
    }
    box.dims[at] = dim;
  }
  box.rank = 0;
  for (int i = 0; i < kept; ++i) {
    const BoxDim dim = box.dims[i];
    if (box.rank > 0) {
      BoxDim& outer = box.dims[box.rank - 1];
      if (outer.dst == dim.dst * dim.size && outer.src == dim.src * dim.size) {
        outer = {outer.size * dim.size, dim.dst, dim.src};
        continue;
      }
    }
    box.dims[box.rank++] = dim;
  }
}

void append_copy_box(const Operand& out, const std::byte* src,
                     std::span<const std::int64_t> src_strides,
                     BoxList* boxes) {
  Box box;
  box.dst = out.data;
  box.src = src;
  box.rank = 0;
  for (int d = 0; d < out.rank; ++d) {
    box.add(out.sizes[d], out.strides[d], src == nullptr ? 0 : src_strides[d]);
  }
  simplify(box);
  boxes->push_back(box);
}

}  // namespace shardprop::kernels

// Evaluates cat and stack, writes to a part, padding, and permutations along
// dims.

#include "base/index.h"
#include "reference/kernels.h"
#include "reference/parts.h"

#include <algorithm>
#include <utility>

namespace shardprop::reference {
namespace {

Tensor blank_join(const Call& call) {
  return Tensor::zeros(call.out().shape(), call.out().dtype());
}

std::vector<Tensor> cat(const Call& call) {
  const Tensor out = blank_join(call);
  if (out.numel() == 0) return {out};
  const int dim = call.dim("dim", out.rank());
  std::int64_t start = 0;
  for (const Tensor& tensor : call.list_values("tensors")) {
    // torch.cat accepts an empty vector next to tensors of any shape.
    if (tensor.rank() != out.rank()) continue;
    copy_into(part_of(out, dim, start, tensor.size(dim)), tensor);
    start += tensor.size(dim);
  }
  return {out};
}

std::vector<Tensor> stack(const Call& call) {
  const Tensor out = blank_join(call);
  const int dim = call.dim("dim", out.rank());
  std::int64_t at = 0;
  for (const Tensor& tensor : call.list_values("tensors")) {
    copy_into(element_of(out, dim, at++), tensor);
  }
  return {out};
}

Tensor copy_of_self(const Call& call) {
  return cast(call.value("self"), call.out().dtype());
}

std::vector<Tensor> slice_scatter(const Call& call) {
  const Tensor out = copy_of_self(call);
  const Tensor& src = call.value("src");
  const int dim = call.dim("dim", out.rank());
  const std::int64_t size = out.size(dim);
  std::int64_t start = call.integer_or("start", 0);
  if (start < 0) start += size;
  start = std::clamp<std::int64_t>(start, 0, size);
  copy_into(part_of(out, dim, start, src.size(dim), call.integer("step")), src);
  return {out};
}

std::vector<Tensor> select_scatter(const Call& call) {
  const Tensor out = copy_of_self(call);
  const Tensor& src = call.value("src");
  const int dim = call.dim("dim", out.rank());
  std::int64_t at = call.integer("index");
  if (at < 0) at += out.size(dim);
  copy_into(element_of(out, dim, at), src);
  return {out};
}

std::vector<Tensor> diagonal_scatter(const Call& call) {
  const Tensor out = copy_of_self(call);
  const Tensor& src = call.value("src");
  copy_into(diagonal_of(out, call.dim("dim1", out.rank()),
                        call.dim("dim2", out.rank()), call.integer("offset"),
                        src.shape()),
            src);
  return {out};
}

// Returns the position that element i of a padded dim copies; nullopt for a
// fill.
using Source = std::optional<std::int64_t> (*)(std::int64_t i,
                                               std::int64_t size);

std::optional<std::int64_t> from_inside(std::int64_t i, std::int64_t size) {
  if (i < 0 || i >= size) return std::nullopt;
  return i;
}
std::optional<std::int64_t> from_mirror(std::int64_t i, std::int64_t size) {
  if (i < 0) i = -i;
  return i >= size ? 2 * (size - 1) - i : i;
}
std::optional<std::int64_t> from_edge(std::int64_t i, std::int64_t size) {
  return std::clamp<std::int64_t>(i, 0, size - 1);
}
std::optional<std::int64_t> from_round(std::int64_t i, std::int64_t size) {
  return (i % size + size) % size;
}

template <class T>
Tensor padded(const Call& call, Source source, T value) {
  const Tensor& self = call.value("self");
  const std::vector<std::int64_t> pad = call.integers("pad");
  const Dims& shape = call.out().shape();
  const std::size_t rank = shape.size();
  const std::vector<T> from = values<T>(self);
  const Dims steps = contiguous_strides(self.shape());
  // By dim and index: the offset in `from`, or -1 for padding.
  std::vector<std::vector<std::int64_t>> offsets(rank);
  for (std::size_t d = 0; d < rank; ++d) {
    const std::size_t p = 2 * (rank - 1 - d);
    const std::int64_t before = p < pad.size() ? pad[p] : 0;
    for (std::int64_t i = 0; i < shape[d]; ++i) {
      const auto at = source(i - before, self.shape()[d]);
      offsets[d].push_back(at ? *at * steps[d] : -1);
    }
  }
  std::vector<T> out;
  const Dims strides = contiguous_strides(shape);
  for_each_offset(shape, strides, [&](std::int64_t flat) {
    std::int64_t offset = 0;
    bool inside = true;
    for (std::size_t d = 0; d < rank; ++d) {
      const std::int64_t i = flat / strides[d] % shape[d];
      const std::int64_t step = offsets[d][index(i)];
      inside = inside && step >= 0;
      offset += step;
    }
    out.push_back(inside ? from[index(offset)] : value);
  });
  return call.made(out);
}

std::vector<Tensor> pad(const Call& call) {
  Source source = from_inside;
  if (call.has("mode")) {
    const std::string_view mode = call.text("mode");
    if (mode == "reflect") source = from_mirror;
    if (mode == "replicate") source = from_edge;
    if (mode == "circular") source = from_round;
  }
  const double value = call.number("value", 0);
  switch (domain_of(call.out().dtype())) {
    case Domain::kReal:
      return {padded(call, source, value)};
    case Domain::kInteger:
      return {padded(call, source, static_cast<std::int64_t>(value))};
    case Domain::kComplex:
      break;
  }
  return {padded(call, source, Complex(value))};
}

std::vector<Tensor> repeat(const Call& call) {
  const Tensor out = blank_join(call);
  const Tensor& self = call.value("self");
  if (out.numel() == 0) return {out};
  Dims shape(out.shape().size(), 1);
  std::copy_backward(self.shape().begin(), self.shape().end(), shape.end());
  // Each dim is viewed as (times, size).
  Dims split;
  Dims strides;
  Dims times_strides;
  const Tensor from = contiguous(self);
  const Dims from_steps = contiguous_strides(shape);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    split.push_back(out.shape()[d] / shape[d]);
    split.push_back(shape[d]);
    times_strides.push_back(0);
    times_strides.push_back(from_steps[d]);
  }
  copy_into(out.seen_as(split, contiguous_strides(split)),
            from.seen_as(split, times_strides));
  return {out};
}

// Element i of each dim is a copy of element source[d][i].
Tensor moved(const Tensor& self,
             const std::vector<std::vector<std::int64_t>>& source) {
  const Tensor from = contiguous(self);
  const Tensor out = Tensor::zeros(self.shape(), self.dtype());
  const std::int64_t width = item_size(self.dtype());
  const Dims steps = contiguous_strides(self.shape());
  for_each_offset(self.shape(), steps, [&](std::int64_t flat) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < steps.size(); ++d) {
      const std::int64_t i = flat / steps[d] % self.shape()[d];
      offset += source[d][index(i)] * steps[d];
    }
    std::copy_n(from.data() + offset * width, width, out.data() + flat * width);
  });
  return out;
}

std::vector<std::vector<std::int64_t>> unmoved(const Dims& shape) {
  std::vector<std::vector<std::int64_t>> source;
  for (const std::int64_t size : shape) {
    source.emplace_back();
    for (std::int64_t i = 0; i < size; ++i) source.back().push_back(i);
  }
  return source;
}

std::vector<Tensor> flip(const Call& call) {
  const Tensor& self = call.value("self");
  auto source = unmoved(self.shape());
  if (call.integers("dims").empty() || self.rank() == 0) {
    return {cast(self, self.dtype())};
  }
  for (const int d : call.dims("dims", self.rank())) {
    std::reverse(source[index(d)].begin(), source[index(d)].end());
  }
  return {moved(self, source)};
}

std::vector<Tensor> roll(const Call& call) {
  Tensor self = call.value("self");
  const Dims shape = self.shape();
  const std::vector<std::int64_t> shifts = call.integers("shifts");
  std::vector<std::int64_t> dims = call.integers("dims");
  if (dims.empty()) {
    const Dims flat{self.numel()};
    self = contiguous(self).seen_as(flat, Dims{1});
    dims = {0};
  }
  if (self.numel() == 0) return {cast(call.value("self"), self.dtype())};
  for (std::size_t s = 0; s < dims.size() && self.rank() > 0; ++s) {
    auto source = unmoved(self.shape());
    const int d = wrap_dim(dims[s], self.rank());
    const std::int64_t size = self.size(d);
    for (std::int64_t i = 0; i < size; ++i) {
      source[index(d)][index(i)] = ((i - shifts[s]) % size + size) % size;
    }
    self = moved(self, source);
  }
  self = contiguous(self);
  return {cast(self.seen_as(shape, contiguous_strides(shape)), self.dtype())};
}

// Keeps the elements of each matrix on one side of a diagonal.
Kernel triangle(bool lower) {
  return [lower](const Call& call) {
    const Tensor out = copy_of_self(call);
    const std::int64_t diagonal = call.integer_or("diagonal", 0);
    const std::int64_t rows = out.size(out.rank() - 2);
    const std::int64_t columns = out.size(out.rank() - 1);
    const std::int64_t width = item_size(out.dtype());
    for (std::int64_t i = 0; i < out.numel(); ++i) {
      const std::int64_t column = i % columns;
      const std::int64_t row = i / columns % rows;
      const bool stays =
          lower ? column - row <= diagonal : column - row >= diagonal;
      if (!stays) std::fill_n(out.data() + i * width, width, std::byte{0});
    }
    return std::vector<Tensor>{out};
  };
}

}  // namespace

void add_joins(Kernels& k) {
  k.add({"cat", "prims::cat", "concat", "concatenate"}, cat);
  k.add({"stack"}, stack);
  k.add({"slice_scatter"}, slice_scatter);
  k.add({"select_scatter"}, select_scatter);
  k.add({"diagonal_scatter"}, diagonal_scatter);
  k.add({"constant_pad_nd", "pad"}, pad);
  k.add({"repeat"}, repeat);
  k.add({"flip"}, flip);
  k.add({"roll"}, roll);
  k.add({"tril"}, triangle(true));
  k.add({"triu"}, triangle(false));
}

}  // namespace shardprop::reference

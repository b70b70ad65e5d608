// Evaluates views: the operand's memory with other strides, if such strides
// exist.

#include "ops/space/view_strides.h"
#include "reference/kernels.h"
#include "reference/parts.h"

#include <algorithm>
#include <utility>

namespace shardprop::reference {
namespace {

// Returns the same elements in row-major order with the shape of the result.
std::vector<Tensor> reshaped(const Call& call) {
  const Tensor& self = call.first_value();
  const Dims& shape = call.out().shape();
  if (auto strides = view_strides(self.meta(), shape)) {
    return {self.seen_as(shape, *std::move(strides))};
  }
  return {contiguous(self).seen_as(shape, contiguous_strides(shape))};
}

// Evaluates views whose dims are dims of the operand, moved, broadcast or of
// size 1. The index space gives the factor of each dim.
std::vector<Tensor> mapped(const Call& call) {
  const Tensor& self = call.first_value();
  auto space = call.library().index_space(call.op());
  if (!space) call_error(space.error().message);
  const Operand& from = space->inputs[0];
  Dims strides;
  for (const DimFactors& dim : space->outputs[0].dims) {
    std::int64_t stride = 0;
    for (std::size_t d = 0; d < from.dims.size(); ++d) {
      if (!dim.empty() && from.dims[d] == dim) stride = self.strides()[d];
    }
    strides.push_back(stride);
  }
  return {self.seen_as(call.out().shape(), std::move(strides))};
}

std::vector<Tensor> unchanged(const Call& call) { return {call.first_value()}; }

// Views the same bytes as elements of another dtype, possibly of another size.
std::vector<Tensor> of_other_dtype(const Call& call) {
  const Tensor& self = call.first_value();
  const TensorMeta& out = call.out();
  const bool resizes = item_size(out.dtype()) != item_size(self.dtype());
  if (!resizes) return {self.seen_as(out.dtype())};
  const Tensor bytes = contiguous(self);
  return {Tensor::wrap(bytes.data(), out.shape(),
                       contiguous_strides(out.shape()), out.dtype(),
                       bytes.owner())};
}

std::int64_t from_front(std::int64_t at, std::int64_t size) {
  return at < 0 ? at + size : at;
}

std::vector<Tensor> slice(const Call& call) {
  const Tensor& self = call.first_value();
  const int dim = call.dim("dim", self.rank());
  const std::int64_t size = self.size(dim);
  const std::int64_t start = std::clamp<std::int64_t>(
      from_front(call.integer_or("start", 0), size), 0, size);
  return {
      part_of(self, dim, start, call.out().size(dim), call.integer("step"))};
}

std::vector<Tensor> narrow(const Call& call) {
  const Tensor& self = call.first_value();
  const int dim = call.dim("dim", self.rank());
  const Tensor* given = call.optional_value("start");
  const std::int64_t start =
      from_front(given != nullptr ? values<std::int64_t>(*given).front()
                                  : call.integer("start"),
                 self.size(dim));
  require(start >= 0 && start + call.out().size(dim) <= self.size(dim),
          "a start is out of range");
  return {part_of(self, dim, start, call.out().size(dim))};
}

std::vector<Tensor> select(const Call& call) {
  const Tensor& self = call.first_value();
  const int dim = call.dim("dim", self.rank());
  const std::int64_t at = from_front(call.integer("index"), self.size(dim));
  return {element_of(self, dim, at)};
}

std::vector<Tensor> unbind(const Call& call) {
  const Tensor& self = call.first_value();
  const int dim = call.dim("dim", self.rank());
  std::vector<Tensor> out;
  for (std::int64_t i = 0; i < self.size(dim); ++i) {
    out.push_back(element_of(self, dim, i));
  }
  return out;
}

// Returns consecutive parts with the sizes of the results.
std::vector<Tensor> cut_up(const Call& call) {
  const Tensor& self = call.first_value();
  const int dim = call.dim("dim", self.rank());
  const bool copies = call.base_name().starts_with("unsafe_");
  std::vector<Tensor> out;
  std::int64_t start = 0;
  for (std::size_t i = 0; i < call.outputs(); ++i) {
    const std::int64_t length = call.out(i).size(dim);
    const Tensor part = part_of(self, dim, start, length);
    out.push_back(copies ? cast(part, part.dtype()) : part);
    start += length;
  }
  return out;
}

std::vector<Tensor> diagonal(const Call& call) {
  const Tensor& self = call.first_value();
  return {diagonal_of(self, call.dim("dim1", self.rank()),
                      call.dim("dim2", self.rank()), call.integer("offset"),
                      call.out().shape())};
}

std::vector<Tensor> as_strided(const Call& call) {
  const Tensor& self = call.first_value();
  const std::vector<std::int64_t> strides = call.integers("stride");
  const Dims& shape = call.out().shape();
  std::int64_t last = call.integer_or("storage_offset", 0);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    last += std::max<std::int64_t>(shape[d] - 1, 0) * strides[d];
  }
  // The reference knows only the memory that the operand spans.
  if (!self.is_contiguous() ||
      (call.out().numel() > 0 && last >= self.numel())) {
    throw NoKernel{"a view beyond its operand"};
  }
  return {self.seen_as(shape, Dims(std::span(strides)),
                       call.integer_or("storage_offset", 0))};
}

// Views a dim as windows of `size` elements, which become the last dim.
std::vector<Tensor> unfold(const Call& call) {
  const Tensor& self = call.first_value();
  Dims strides = self.strides();
  std::int64_t step = 1;
  if (self.rank() > 0) {
    std::int64_t& along = strides[index(call.dim("dimension", self.rank()))];
    step = along;
    along *= call.integer("step");
  }
  strides.push_back(step);
  return {self.seen_as(call.out().shape(), std::move(strides))};
}

// Returns the memory of complex numbers as pairs of reals, from `offset` reals
// on.
Tensor as_reals(const Call& call, Dims strides, std::int64_t offset) {
  const Tensor& self = call.first_value();
  const DType real = call.out().dtype();
  return Tensor::wrap(
      self.data() + offset * static_cast<std::int64_t>(item_size(real)),
      call.out().shape(), std::move(strides), real, self.owner());
}

Dims doubled(Dims strides) {
  for (std::int64_t& stride : strides) stride *= 2;
  return strides;
}

std::vector<Tensor> view_as_real(const Call& call) {
  Dims strides = doubled(call.first_value().strides());
  strides.push_back(1);
  return {as_reals(call, std::move(strides), 0)};
}

std::vector<Tensor> view_as_complex(const Call& call) {
  const Tensor& self = call.first_value();
  Dims strides = self.strides();
  require(strides.back() == 1, "pairs do not lie together");
  strides.pop_back();
  for (std::int64_t& stride : strides) {
    require(stride % 2 == 0, "pairs do not lie together");
    stride /= 2;
  }
  return {Tensor::wrap(self.data(), call.out().shape(), std::move(strides),
                       call.out().dtype(), self.owner())};
}

std::vector<Tensor> part_of_complex(const Call& call) {
  const Tensor& self = call.first_value();
  const bool is_imaginary = call.base_name() == "imag";
  if (!is_complex(self.dtype())) {
    require(!is_imaginary, "a real tensor has no imaginary part");
    return unchanged(call);
  }
  return {as_reals(call, doubled(self.strides()), is_imaginary ? 1 : 0)};
}

}  // namespace

void add_views(Kernels& k) {
  k.add(
      {"view", "_unsafe_view", "reshape", "prims::reshape", "view_as",
       "reshape_as", "flatten.using_ints", "ravel", "unflatten.int", "squeeze",
       "squeeze.dim", "squeeze.dims", "prims::squeeze", "unsqueeze"},
      reshaped);
  k.add({"permute", "transpose.int", "prims::transpose", "swapaxes", "swapdims",
         "t", "mT", "numpy_T", "movedim.int", "movedim.intlist", "moveaxis.int",
         "moveaxis.intlist", "expand", "expand_as", "broadcast_to"},
        mapped);
  k.add({"alias", "detach", "lift_fresh", "prims::view_of", "positive",
         "resolve_conj", "resolve_neg"},
        unchanged);
  k.add({"mH", "adjoint"}, [](const Call& call) {
    if (is_complex(call.out().dtype())) throw NoKernel{"complex numbers"};
    return mapped(call);
  });
  k.add({"conj", "prims::conj", "_conj"}, [](const Call& call) {
    if (!is_complex(call.out().dtype())) return unchanged(call);
    std::vector<Complex> x = values<Complex>(call.first_value());
    for (Complex& v : x) v = std::conj(v);
    return std::vector<Tensor>{call.made(x)};
  });
  k.add({"view.dtype"}, of_other_dtype);
  k.add({"slice.Tensor"}, slice);
  k.add({"narrow", "narrow.Tensor"}, narrow);
  k.add({"select.int"}, select);
  k.add({"unbind.int"}, unbind);
  k.add(
      {"split.Tensor", "split.sizes", "split_with_sizes", "unsafe_split.Tensor",
       "unsafe_split_with_sizes", "chunk", "unsafe_chunk"},
      cut_up);
  k.add({"diagonal", "linalg_diagonal"}, diagonal);
  k.add({"unfold"}, unfold);
  k.add({"view_as_real"}, view_as_real);
  k.add({"view_as_complex"}, view_as_complex);
  k.add({"real", "prims::real", "imag", "prims::imag"}, part_of_complex);
  k.add({"as_strided", "_reshape_alias"}, as_strided);
}

}  // namespace shardprop::reference

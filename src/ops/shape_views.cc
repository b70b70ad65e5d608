#include "ops/shape_context.h"
#include "ops/view_strides.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace shardprop {
namespace {

std::size_t at(int dim) { return static_cast<std::size_t>(dim); }

// The sizes with a lone -1 made what the element count leaves for it.
Dims resolve_sizes(const TensorMeta& self,
                   std::span<const std::int64_t> sizes) {
  Dims out;
  std::int64_t known = 1;
  std::optional<std::size_t> open;
  for (const std::int64_t size : sizes) {
    if (size == -1) {
      require(!open, "two sizes are -1");
      open = out.size();
    } else {
      require(size >= 0, "a size is negative");
      known = multiply_sizes(known, size);
    }
    out.push_back(size);
  }
  if (open) {
    require(known > 0 && self.numel() % known == 0,
            "no size fits in the place of -1");
    out[*open] = self.numel() / known;
  } else {
    require(known == self.numel(), "the sizes hold another count of elements");
  }
  return out;
}

TensorMeta viewed(const TensorMeta& self, Dims shape, DType dtype) {
  // A copy, where the strides allow no view (reshape, _unsafe_view).
  auto strides = view_strides(self, shape);
  if (!strides) return make_meta(std::move(shape), dtype);
  return make_meta(std::move(shape), *std::move(strides), dtype);
}

Results view(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  if (op.overload() == "dtype") {
    const auto dtype = op.op().dtype_arg("dtype");
    require(dtype && item_size(*dtype) == item_size(self.dtype()),
            "a view as a dtype of another width");
    return one(with_dtype(self, *dtype));
  }
  const auto sizes = op.integers(op.has("size") ? "size" : "shape");
  return one(viewed(self, resolve_sizes(self, sizes), self.dtype()));
}

Results view_as(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  const Dims& wanted = op.tensor("other").shape();
  require(product(wanted) == self.numel(),
          "the sizes hold another count of elements");
  return one(viewed(self, wanted, self.dtype()));
}

Results flatten(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  require(op.overload() == "using_ints", "named dims are not supported");
  const int first = wrap_dim(op.integer("start_dim"), self.rank());
  const int last = wrap_dim(op.integer("end_dim"), self.rank());
  require(first <= last, "start_dim comes after end_dim");
  if (self.rank() == 0) return one(viewed(self, Dims{1}, self.dtype()));
  Dims shape;
  for (int dim = 0; dim < self.rank(); ++dim) {
    if (dim <= first || dim > last) {
      shape.push_back(self.size(dim));
    } else {
      shape.back() *= self.size(dim);
    }
  }
  return one(viewed(self, std::move(shape), self.dtype()));
}

Results unflatten(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  const int dim = wrap_dim(op.integer("dim"), self.rank());
  require(self.rank() > 0, "a scalar has no dim to unflatten");
  const TensorMeta part = make_meta(Dims{self.size(dim)}, self.dtype());
  const Dims inner = resolve_sizes(part, op.integers("sizes"));
  Dims shape;
  for (int i = 0; i < self.rank(); ++i) {
    if (i != dim) {
      shape.push_back(self.size(i));
    } else {
      for (const std::int64_t size : inner) shape.push_back(size);
    }
  }
  return one(viewed(self, std::move(shape), self.dtype()));
}

TensorMeta select_dims(const TensorMeta& self, std::span<const int> dims) {
  Dims shape;
  Dims strides;
  for (const int dim : dims) {
    shape.push_back(self.size(dim));
    strides.push_back(self.strides()[at(dim)]);
  }
  return make_meta(std::move(shape), std::move(strides), self.dtype());
}

Results permute(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  std::vector<int> order;
  for (const std::int64_t dim : op.integers("dims")) {
    const int wrapped = wrap_dim(dim, self.rank());
    require(std::find(order.begin(), order.end(), wrapped) == order.end(),
            "a dim stands twice in a permutation");
    order.push_back(wrapped);
  }
  require(order.size() == self.shape().size(), "a permutation names every dim");
  return one(select_dims(self, order));
}

std::vector<int> all_dims(const TensorMeta& self) {
  std::vector<int> dims(self.shape().size());
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

Results transpose(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  require(op.overload() == "int", "named dims are not supported");
  const int a = wrap_dim(op.integer("dim0"), self.rank());
  const int b = wrap_dim(op.integer("dim1"), self.rank());
  std::vector<int> dims = all_dims(self);
  if (!dims.empty()) std::swap(dims[at(a)], dims[at(b)]);
  return one(select_dims(self, dims));
}

Results matrix_transpose(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  std::vector<int> dims = all_dims(self);
  const bool batched = op.base_name() == "mT";
  require(batched ? dims.size() >= 2 : dims.size() <= 2,
          "a tensor of this rank has no transpose");
  if (dims.size() >= 2) std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
  return one(select_dims(self, dims));
}

Results unsqueeze(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  const int dim = wrap_dim(op.integer("dim"), self.rank() + 1);
  Dims shape = self.shape();
  Dims strides = self.strides();
  const std::int64_t stride =
      dim < self.rank() ? multiply_sizes(self.size(dim), strides[at(dim)]) : 1;
  shape.insert(shape.begin() + dim, 1);
  strides.insert(strides.begin() + dim, stride);
  return one(make_meta(std::move(shape), std::move(strides), self.dtype()));
}

Results squeeze(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  std::vector<bool> named(self.shape().size(), op.overload() == "default");
  if (op.has("dim")) {
    for (const std::int64_t dim : op.integers("dim")) {
      const int wrapped = wrap_dim(dim, self.rank());
      if (self.rank() > 0) named[at(wrapped)] = true;
    }
  }
  std::vector<int> kept;
  for (int dim = 0; dim < self.rank(); ++dim) {
    if (!named[at(dim)] || self.size(dim) != 1) kept.push_back(dim);
  }
  return one(select_dims(self, kept));
}

Results expand(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  std::vector<std::int64_t> sizes;
  if (op.base_name() == "expand_as") {
    const Dims& other = op.tensor("other").shape();
    sizes.assign(other.begin(), other.end());
  } else {
    sizes = op.integers("size");
  }
  require(sizes.size() >= self.shape().size(), "fewer sizes than dims");
  Dims shape(sizes.size());
  Dims strides(sizes.size());
  const std::size_t added = sizes.size() - self.shape().size();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::int64_t old = i < added ? 1 : self.shape()[i - added];
    require(sizes[i] >= 0 || (sizes[i] == -1 && i >= added),
            "a new dim needs a size");
    shape[i] = sizes[i] == -1 ? old : sizes[i];
    require(old == shape[i] || old == 1, "only a dim of size 1 expands");
    if (i >= added && old == shape[i]) strides[i] = self.strides()[i - added];
  }
  return one(make_meta(std::move(shape), std::move(strides), self.dtype()));
}

Results slice(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  require(self.rank() > 0, "a scalar cannot be sliced");
  const int dim = wrap_dim(op.integer("dim"), self.rank());
  Dims shape = self.shape();
  Dims strides = self.strides();
  const std::int64_t step = op.integer("step");
  shape[at(dim)] = slice_length(self.size(dim), op.op().int_arg("start"),
                                op.op().int_arg("end"), step);
  strides[at(dim)] = multiply_sizes(strides[at(dim)], step);
  return one(make_meta(std::move(shape), std::move(strides), self.dtype()));
}

TensorMeta without_dim(const TensorMeta& self, int dim) {
  std::vector<int> kept = all_dims(self);
  kept.erase(kept.begin() + dim);
  return select_dims(self, kept);
}

Results select(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  require(op.overload() == "int" && self.rank() > 0, "nothing to select from");
  const int dim = wrap_dim(op.integer("dim"), self.rank());
  const std::int64_t index = op.integer("index");
  require(index >= -self.size(dim) && index < self.size(dim),
          "an index is out of range");
  return one(without_dim(self, dim));
}

Results narrow(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  require(op.overload() == "default" && self.rank() > 0, "nothing to narrow");
  const int dim = wrap_dim(op.integer("dim"), self.rank());
  const std::int64_t length = op.integer("length");
  require(length >= 0 && length <= self.size(dim), "a length is out of range");
  Dims shape = self.shape();
  shape[at(dim)] = length;
  return one(make_meta(std::move(shape), self.strides(), self.dtype()));
}

// Pieces of one dim; every piece takes self's strides.
Results pieces(const TensorMeta& self, int dim,
               std::span<const std::int64_t> sizes) {
  // More pieces than any program has; each costs memory.
  require(sizes.size() <= 65536, "too many pieces");
  std::int64_t sum = 0;
  Results results;
  for (const std::int64_t size : sizes) {
    require(size >= 0, "a piece has a negative size");
    sum = add_sizes(sum, size);
    Dims shape = self.shape();
    shape[at(dim)] = size;
    results.emplace_back(
        make_meta(std::move(shape), self.strides(), self.dtype()));
  }
  require(sum == self.size(dim), "the pieces do not add up to the dim");
  return results;
}

std::vector<std::int64_t> equal_pieces(std::int64_t size, std::int64_t piece) {
  require(piece >= 0, "a piece of no size");
  if (size == 0) return {0};
  if (piece == 0) shape_error("a piece of no size");
  require((size - 1) / piece < 65536, "too many pieces");
  std::vector<std::int64_t> sizes;
  for (std::int64_t left = size; left > 0; left -= piece) {
    sizes.push_back(std::min(left, piece));
  }
  return sizes;
}

Results split(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  require(self.rank() > 0, "a scalar cannot be split");
  const int dim = wrap_dim(op.integer("dim"), self.rank());
  if (op.has("split_sizes")) {
    return pieces(self, dim, op.integers("split_sizes"));
  }
  if (op.overload() == "sizes")
    return pieces(self, dim, op.integers("split_size"));
  return pieces(self, dim,
                equal_pieces(self.size(dim), op.integer("split_size")));
}

Results chunk(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  require(self.rank() > 0, "a scalar cannot be cut");
  const int dim = wrap_dim(op.integer("dim"), self.rank());
  const std::int64_t chunks = op.integer("chunks");
  require(chunks > 0, "no chunks");
  const std::int64_t size = self.size(dim);
  const std::int64_t piece = size / chunks + (size % chunks != 0 ? 1 : 0);
  if (size == 0) {
    require(chunks <= 65536, "too many pieces");
    return pieces(
        self, dim,
        std::vector<std::int64_t>(static_cast<std::size_t>(chunks), 0));
  }
  return pieces(self, dim, equal_pieces(size, piece));
}

Results unbind(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  require(op.overload() == "int" && self.rank() > 0, "nothing to unbind");
  const int dim = wrap_dim(op.integer("dim"), self.rank());
  require(self.size(dim) <= 65536, "too many pieces");
  const TensorMeta piece = without_dim(self, dim);
  return Results(static_cast<std::size_t>(self.size(dim)), piece);
}

Results alias(const ShapeContext& op) {
  return one(op.has("self") ? op.tensor("self") : op.tensor("a"));
}

Results as_strided(const ShapeContext& op) {
  const auto sizes = op.integers("size");
  const auto strides = op.integers("stride");
  return one(make_meta(Dims(sizes.begin(), sizes.end()),
                       Dims(strides.begin(), strides.end()),
                       op.tensor("self").dtype()));
}

Results diagonal(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  require(op.overload() == "default" && self.rank() >= 2,
          "a diagonal needs two dims");
  const int a = wrap_dim(op.integer("dim1"), self.rank());
  const int b = wrap_dim(op.integer("dim2"), self.rank());
  require(a != b, "a diagonal needs two dims");
  const std::int64_t offset = op.integer("offset");
  require(offset > -(std::int64_t{1} << 60) && offset < (std::int64_t{1} << 60),
          "an offset is out of range");
  const std::int64_t length =
      offset >= 0 ? std::min(self.size(a), self.size(b) - offset)
                  : std::min(self.size(a) + offset, self.size(b));
  Dims shape;
  Dims strides;
  for (int dim = 0; dim < self.rank(); ++dim) {
    if (dim == a || dim == b) continue;
    shape.push_back(self.size(dim));
    strides.push_back(self.strides()[at(dim)]);
  }
  shape.push_back(std::max<std::int64_t>(length, 0));
  strides.push_back(add_sizes(self.strides()[at(a)], self.strides()[at(b)]));
  return one(make_meta(std::move(shape), std::move(strides), self.dtype()));
}

}  // namespace

void add_view_shapes(ShapeTable& table) {
  for (const char* name : {"aten.view", "aten.reshape", "aten._unsafe_view",
                           "aten._reshape_alias", "aten.view_copy"}) {
    table[name] = view;
  }
  table["aten.view_as"] = view_as;
  table["aten.reshape_as"] = view_as;
  table["aten.flatten"] = flatten;
  table["aten.unflatten"] = unflatten;
  table["aten.permute"] = permute;
  table["aten.transpose"] = transpose;
  for (const char* name : {"aten.t", "aten.numpy_T", "aten.mT"}) {
    table[name] = matrix_transpose;
  }
  table["aten.unsqueeze"] = unsqueeze;
  table["aten.squeeze"] = squeeze;
  table["aten.expand"] = expand;
  table["aten.expand_as"] = expand;
  table["aten.slice"] = slice;
  table["aten.select"] = select;
  table["aten.narrow"] = narrow;
  for (const char* name :
       {"aten.split", "aten.split_with_sizes", "aten.unsafe_split",
        "aten.unsafe_split_with_sizes", "aten.split_with_sizes_copy"}) {
    table[name] = split;
  }
  table["aten.chunk"] = chunk;
  table["aten.unsafe_chunk"] = chunk;
  table["aten.unbind"] = unbind;
  for (const char* name : {"aten.alias", "aten.detach", "aten.lift_fresh",
                           "aten.conj", "prims.view_of", "aten._conj"}) {
    table[name] = alias;
  }
  table["aten.as_strided"] = as_strided;
  table["aten.diagonal"] = diagonal;
}

}  // namespace shardprop

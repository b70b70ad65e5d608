#include "ops/shape_context.h"
#include "ops/view_strides.h"

#include <algorithm>
#include <utility>

namespace shardprop {
namespace {

std::size_t at(int dim) { return static_cast<std::size_t>(dim); }

bool is_index(DType dtype) {
  return dtype == DType::kI64 || dtype == DType::kI32;
}

Results same_as_self(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  return one(dense_like(self, self.shape(), self.dtype()));
}

Results cat(const ShapeContext& op) {
  const std::vector<TensorMeta> tensors = op.tensors("tensors");
  require(!tensors.empty(), "nothing to join");
  DType dtype = tensors.front().dtype();
  // An empty vector joins with anything, for old times' sake.
  const TensorMeta* first = nullptr;
  for (const TensorMeta& tensor : tensors) {
    dtype = promote_types(dtype, tensor.dtype());
    const bool skipped = tensor.rank() == 1 && tensor.size(0) == 0;
    if (first == nullptr && !skipped) first = &tensor;
  }
  if (first == nullptr) return one(make_meta(Dims{0}, dtype));
  require(first->rank() > 0, "scalars cannot be joined");
  const std::size_t dim = at(wrap_dim(op.integer("dim"), first->rank()));
  Dims shape = first->shape();
  shape[dim] = 0;
  for (const TensorMeta& tensor : tensors) {
    if (tensor.rank() == 1 && tensor.size(0) == 0) continue;
    require(tensor.rank() == first->rank(), "the ranks differ");
    for (std::size_t i = 0; i < shape.size(); ++i) {
      require(i == dim || tensor.shape()[i] == shape[i],
              "sizes differ outside the dim that is joined");
    }
    shape[dim] = add_sizes(shape[dim], tensor.shape()[dim]);
  }
  return one(make_meta(std::move(shape), dtype));
}

Results stack(const ShapeContext& op) {
  const std::vector<TensorMeta> tensors = op.tensors("tensors");
  require(!tensors.empty(), "nothing to stack");
  DType dtype = tensors.front().dtype();
  for (const TensorMeta& tensor : tensors) {
    require(tensor.shape() == tensors.front().shape(), "the shapes differ");
    dtype = promote_types(dtype, tensor.dtype());
  }
  Dims shape = tensors.front().shape();
  const int dim =
      wrap_dim(op.integer("dim"), static_cast<int>(shape.size()) + 1);
  shape.insert(shape.begin() + dim, static_cast<std::int64_t>(tensors.size()));
  return one(make_meta(std::move(shape), dtype));
}

// x[i, :, j]: the index tensors broadcast together; their dims stand where the
// first one was when they are neighbours, in front otherwise.
Results index(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  const auto* list =
      std::get_if<std::vector<TensorArg>>(&op.op().arg("indices"));
  require(list != nullptr && list->size() <= self.shape().size(),
          "more indices than dims");
  Dims indexed;
  std::vector<bool> taken(self.shape().size(), false);
  for (std::size_t i = 0; i < list->size(); ++i) {
    if ((*list)[i].operand == TensorArg::kNone) continue;
    const TensorMeta& one_index =
        op.op().inputs[static_cast<std::size_t>((*list)[i].operand)];
    require(is_index(one_index.dtype()),
            "a mask as index has no fixed result shape");
    indexed = broadcast(indexed, one_index.shape());
    taken[i] = true;
  }
  const auto first = std::find(taken.begin(), taken.end(), true);
  require(first != taken.end(), "no index");
  const auto last = std::find(taken.rbegin(), taken.rend(), true).base();
  const bool neighbours = std::find(first, last, false) == last;
  const auto place = static_cast<std::size_t>(first - taken.begin());
  Dims shape;
  if (!neighbours) shape = indexed;
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (neighbours && i == place) {
      for (const std::int64_t size : indexed) shape.push_back(size);
    }
    if (!taken[i]) shape.push_back(self.shape()[i]);
  }
  return one(make_meta(std::move(shape), self.dtype()));
}

Results index_select(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  const TensorMeta& chosen = op.tensor("index");
  require(op.overload() == "default" && chosen.rank() <= 1,
          "the index is no vector");
  Dims shape = self.shape();
  const int dim = wrap_dim(op.integer("dim"), self.rank());
  if (!shape.empty()) shape[at(dim)] = chosen.numel();
  return one(make_meta(std::move(shape), self.dtype()));
}

Results gather(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  const TensorMeta& chosen = op.tensor("index");
  require(op.overload() == "default", "named dims are not supported");
  wrap_dim(op.integer("dim"), self.rank());
  require(std::max(self.rank(), 1) == std::max(chosen.rank(), 1),
          "the index has another rank");
  return one(make_meta(chosen.shape(), self.dtype()));
}

Results embedding(const ShapeContext& op) {
  const TensorMeta& weight = op.tensor("weight");
  require(weight.rank() == 2, "the table of an embedding has rank 2");
  require(is_index(op.tensor("indices").dtype()),
          "the indices are no integers");
  Dims shape = op.tensor("indices").shape();
  shape.push_back(weight.size(1));
  return one(make_meta(std::move(shape), weight.dtype()));
}

Results embedding_backward(const ShapeContext& op) {
  const TensorMeta& grad = op.tensor("grad_output");
  require(grad.rank() > 0, "the gradient is a scalar");
  return one(make_meta(Dims{op.integer("num_weights"), grad.shape().back()},
                       grad.dtype()));
}

// self with a region written: the region must have its shape.
Results slice_scatter(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  require(self.rank() > 0, "a scalar cannot be sliced");
  Dims region = self.shape();
  const int dim = wrap_dim(op.integer("dim"), self.rank());
  region[at(dim)] = slice_length(self.size(dim), op.op().int_arg("start"),
                                 op.op().int_arg("end"), op.integer("step"));
  require(op.tensor("src").shape() == region,
          "the source has not the shape of the slice");
  return same_as_self(op);
}

Results select_scatter(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  require(self.rank() > 0, "a scalar has nothing to select");
  Dims region = self.shape();
  region.erase(region.begin() + wrap_dim(op.integer("dim"), self.rank()));
  require(op.tensor("src").shape() == region,
          "the source has not the shape of the selection");
  return same_as_self(op);
}

Results pad(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  const std::vector<std::int64_t> amounts = op.integers("pad");
  require(amounts.size() % 2 == 0 && amounts.size() / 2 <= self.shape().size(),
          "the padding does not match the rank");
  Dims shape = self.shape();
  for (std::size_t i = 0; i < amounts.size() / 2; ++i) {
    std::int64_t& size = shape[shape.size() - 1 - i];
    size = add_sizes(add_sizes(size, amounts[2 * i]), amounts[2 * i + 1]);
    require(size >= 0, "more is cut off than there is");
  }
  return one(dense_like(self, std::move(shape), self.dtype()));
}

Results repeat(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  const auto times = op.integers("repeats");
  require(times.size() >= self.shape().size(), "fewer repeats than dims");
  Dims shape(times.begin(), times.end());
  const std::size_t added = times.size() - self.shape().size();
  for (std::size_t i = added; i < shape.size(); ++i) {
    shape[i] = multiply_sizes(shape[i], self.shape()[i - added]);
  }
  return one(make_meta(std::move(shape), self.dtype()));
}

Results one_hot(const ShapeContext& op) {
  Dims shape = op.tensor("self").shape();
  const std::int64_t classes = op.integer("num_classes");
  require(classes > 0, "the number of classes depends on the data");
  shape.push_back(classes);
  return one(make_meta(std::move(shape), DType::kI64));
}

}  // namespace

void add_indexing_shapes(ShapeTable& table) {
  table["aten.cat"] = cat;
  table["aten.concat"] = cat;
  table["aten.stack"] = stack;
  table["aten.index"] = index;
  table["aten.index_select"] = index_select;
  table["aten.gather"] = gather;
  table["aten.embedding"] = embedding;
  table["aten.embedding_dense_backward"] = embedding_backward;
  table["aten.slice_scatter"] = slice_scatter;
  table["aten.select_scatter"] = select_scatter;
  table["aten.constant_pad_nd"] = pad;
  table["aten.pad"] = pad;
  table["aten.repeat"] = repeat;
  table["aten.one_hot"] = one_hot;
  for (const char* name :
       {"aten.index_put", "aten.scatter", "aten.scatter_add",
        "aten.scatter_reduce", "aten.index_add", "aten.index_copy", "aten.tril",
        "aten.triu", "aten.flip", "aten.roll"}) {
    table[name] = same_as_self;
  }
}

}  // namespace shardprop

#include "ops/shape_context.h"

#include <algorithm>

namespace shardprop {
namespace {

// self without the named dims (all when there are none named), or with them as
// dims of size 1.
Dims reduced(const TensorMeta& self, std::span<const std::int64_t> dims,
             bool keepdim) {
  std::vector<bool> gone(self.shape().size(), dims.empty());
  for (const std::int64_t dim : dims) {
    const int wrapped = wrap_dim(dim, self.rank());
    if (self.rank() > 0) gone[static_cast<std::size_t>(wrapped)] = true;
  }
  Dims shape;
  for (std::size_t i = 0; i < gone.size(); ++i) {
    if (!gone[i]) {
      shape.push_back(self.shape()[i]);
    } else if (keepdim) {
      shape.push_back(1);
    }
  }
  return shape;
}

// The result is laid out in the order of self's dims.
TensorMeta reduce(const ShapeContext& op, DType dtype) {
  const TensorMeta& self = op.tensor(op.has("self") ? "self" : "inp");
  std::vector<std::int64_t> dims;
  for (const char* name : {"dim", "dims"}) {
    if (op.has(name)) dims = op.optional_integers(name).value_or(dims);
  }
  const bool keepdim = op.boolean_or("keepdim", false);
  // A dim that keeps its place with size 1 still orders the strides.
  TensorMeta kept = dense_like(self, reduced(self, dims, true), dtype);
  const Dims shape = reduced(self, dims, keepdim);
  if (keepdim) return kept;
  std::vector<bool> gone(self.shape().size(), dims.empty());
  for (const std::int64_t dim : dims) {
    if (self.rank() > 0) {
      gone[static_cast<std::size_t>(wrap_dim(dim, self.rank()))] = true;
    }
  }
  Dims strides;
  for (std::size_t i = 0; i < gone.size(); ++i) {
    if (!gone[i]) strides.push_back(kept.strides()[i]);
  }
  return make_meta(shape, strides, dtype);
}

DType self_dtype(const ShapeContext& op) {
  return op.tensor(op.has("self") ? "self" : "inp").dtype();
}

// Sums of integers and bools are i64.
Results sum(const ShapeContext& op) {
  const DType own = self_dtype(op);
  const DType natural =
      is_integral(own) || own == DType::kBool ? DType::kI64 : own;
  return one(reduce(op, op.dtype_or("dtype", natural)));
}

Results mean(const ShapeContext& op) {
  return one(reduce(op, op.dtype_or("dtype", self_dtype(op))));
}

Results same_dtype(const ShapeContext& op) {
  return one(reduce(op, self_dtype(op)));
}

Results logsumexp(const ShapeContext& op) {
  return one(reduce(op, to_floating(self_dtype(op))));
}

Results truth(const ShapeContext& op) {
  return one(
      reduce(op, self_dtype(op) == DType::kU8 ? DType::kU8 : DType::kBool));
}

Results arg_extremum(const ShapeContext& op) {
  return one(reduce(op, DType::kI64));
}

// max.dim returns values and indices; max.default the value; max.other is
// elementwise.
Results extremum(const ShapeContext& op) {
  if (op.overload() == "other") {
    constexpr std::string_view kBoth[] = {"self", "other"};
    return one(elementwise(op.op().inputs, result_dtype(op, kBoth)));
  }
  Results results = same_dtype(op);
  if (op.has("dim")) results.emplace_back(reduce(op, DType::kI64));
  return results;
}

// var_mean, aminmax: two results of one shape.
Results pair(const ShapeContext& op) {
  Results results = same_dtype(op);
  results.push_back(results.front());
  return results;
}

Results cumulative(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  wrap_dim(op.integer("dim"), self.rank());
  const bool whole = is_integral(self.dtype()) || self.dtype() == DType::kBool;
  const DType natural = whole ? DType::kI64 : self.dtype();
  return one(dense_like(self, self.shape(), op.dtype_or("dtype", natural)));
}

Results sort(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  Results results = one(dense_like(self, self.shape(), self.dtype()));
  results.emplace_back(dense_like(self, self.shape(), DType::kI64));
  return results;
}

Results argsort(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  return one(dense_like(self, self.shape(), DType::kI64));
}

Results topk(const ShapeContext& op) {
  const TensorMeta& self = op.tensor("self");
  const int dim = wrap_dim(op.integer("dim"), self.rank());
  const std::int64_t k = op.integer("k");
  Dims shape = self.shape();
  if (self.rank() > 0) {
    std::int64_t& size = shape[static_cast<std::size_t>(dim)];
    require(k >= 0 && k <= size, "k is out of range");
    size = k;
  }
  Results results = one(make_meta(shape, self.dtype()));
  results.emplace_back(make_meta(shape, DType::kI64));
  return results;
}

Results vector_norm(const ShapeContext& op) {
  return one(reduce(op, op.dtype_or("dtype", to_floating(self_dtype(op)))));
}

}  // namespace

void add_reduction_shapes(ShapeTable& table) {
  for (const char* name : {"aten.sum", "aten.nansum", "aten.prod"}) {
    table[name] = sum;
  }
  table["aten.mean"] = mean;
  for (const char* name : {"aten.amax", "aten.amin", "aten.var", "aten.std",
                           "aten.median", "prims.var"}) {
    table[name] = same_dtype;
  }
  table["aten.logsumexp"] = logsumexp;
  table["aten.any"] = truth;
  table["aten.all"] = truth;
  table["aten.argmax"] = arg_extremum;
  table["aten.argmin"] = arg_extremum;
  table["aten.max"] = extremum;
  table["aten.min"] = extremum;
  for (const char* name : {"aten.var_mean", "aten.std_mean", "aten.aminmax"}) {
    table[name] = pair;
  }
  for (const char* name : {"aten.cumsum", "aten.cumprod"}) {
    table[name] = cumulative;
  }
  table["aten.sort"] = sort;
  table["aten.argsort"] = argsort;
  table["aten.topk"] = topk;
  table["aten.linalg_vector_norm"] = vector_norm;
  table["aten.norm"] = vector_norm;
}

}  // namespace shardprop

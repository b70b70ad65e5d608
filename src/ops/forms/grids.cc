// This file has the forms of lists of tensors that broadcast together or form a
// Cartesian product.

#include "ops/forms/forms.h"
#include "ops/forms/shared_form.h"
#include "ops/rules/rule_words.h"
#include "ops/space/view_strides.h"

#include <algorithm>
#include <utility>

namespace shardprop {
namespace {

BoundForm bind_expanded_together(const OpCall& call) {
  const std::vector<TensorMeta> tensors = call.tensors("tensors");
  Dims shape;
  for (const TensorMeta& tensor : tensors) {
    shape = broadcast(shape, tensor.shape());
  }
  SpaceBuilder b;
  const Operand whole = b.per_dim(shape);
  for (const TensorMeta& tensor : tensors) {
    b.input(b.aligned(whole, tensor.shape()));
  }
  for (const TensorMeta& tensor : tensors) {
    const std::size_t added = shape.size() - tensor.shape().size();
    Dims strides(shape.size());
    for (std::size_t d = added; d < shape.size(); ++d) {
      if (tensor.shape()[d - added] == shape[d]) {
        strides[d] = tensor.strides()[d - added];
      }
    }
    b.output(whole, {.strides = std::move(strides), .dtype = tensor.dtype()});
  }
  return b.bound();
}

// atleast_2d inserts dims of size 1 in front; atleast_3d also appends one.
BoundForm bind_at_least_each(const OpCall& call, std::size_t least) {
  SpaceBuilder b;
  std::vector<std::pair<Operand, BoundResult>> results;
  for (const TensorMeta& tensor : call.tensors("tensors")) {
    Operand seen = b.per_dim(tensor.shape());
    b.input(seen);
    Dims shape = tensor.shape();
    while (shape.size() < least) {
      const std::ptrdiff_t at = shape.size() == 2 ? 2 : 0;
      shape.insert(shape.begin() + at, 1);
      seen.dims.insert(seen.dims.begin() + at, DimFactors{});
    }
    results.emplace_back(std::move(seen),
                         BoundResult{.strides = view_strides(tensor, shape),
                                     .dtype = tensor.dtype()});
  }
  for (auto& [operand, result] : results) {
    b.output(std::move(operand), std::move(result));
  }
  return b.bound();
}

// Returns the dim of each vector; a scalar counts as a vector of one element.
std::vector<DimFactors> dims_of_vectors(SpaceBuilder& b,
                                        const std::vector<TensorMeta>& list) {
  std::vector<DimFactors> dims;
  for (const TensorMeta& vector : list) {
    require(vector.rank() <= 1, "an operand is not a vector");
    require(vector.dtype() == list.front().dtype(),
            "the vectors are of two dtypes");
    dims.push_back(b.dim(vector.numel()));
    Operand own;
    if (vector.rank() == 1) own.dims.push_back(dims.back());
    b.input(std::move(own));
  }
  return dims;
}

BoundForm bind_grid(const OpCall& call) {
  const std::vector<TensorMeta> vectors = call.tensors("tensors");
  require(!vectors.empty(), "no vectors are given");
  const auto indexing = call.has("indexing")
                            ? call.op().string_arg("indexing").value_or("ij")
                            : "ij";
  require(indexing == "ij" || indexing == "xy", "`indexing` is not ij or xy");
  SpaceBuilder b;
  std::vector<DimFactors> dims = dims_of_vectors(b, vectors);
  Dims shape;
  for (const TensorMeta& vector : vectors) shape.push_back(vector.numel());
  std::vector<std::size_t> place(vectors.size());
  for (std::size_t i = 0; i < place.size(); ++i) place[i] = i;
  // The first vector runs along columns, as in a plot.
  if (indexing == "xy" && place.size() >= 2) {
    std::swap(place[0], place[1]);
    std::swap(dims[0], dims[1]);
    std::swap(shape[0], shape[1]);
  }
  Operand all;
  for (const DimFactors& dim : dims) all.dims.push_back(dim);
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    // Each result is a view of its vector with dims of size 1, expanded.
    const TensorMeta& vector = vectors[i];
    Dims strides(shape.size());
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const std::int64_t step =
          vector.rank() == 1 ? vector.strides()[0] : std::int64_t{1};
      if (d == place[i]) {
        strides[d] = step;
      } else if (shape[d] == 1) {
        strides[d] = d < place[i] ? multiply_sizes(step, vector.numel()) : 1;
      }
    }
    b.output(all, {.shape = shape, .strides = std::move(strides)});
  }
  return b.bound();
}

BoundForm bind_rows(const OpCall& call) {
  const std::vector<TensorMeta> vectors = call.tensors("tensors");
  require(!vectors.empty(), "no vectors are given");
  SpaceBuilder b;
  const std::vector<DimFactors> dims = dims_of_vectors(b, vectors);
  for (const TensorMeta& vector : vectors) {
    require(vector.rank() == 1, "an operand is not a vector");
  }
  DimFactors points;
  for (const DimFactors& dim : dims) {
    for (const FactorId id : dim) points.push_back(id);
  }
  Operand rows{{points}};
  // The product of a single vector is the vector itself.
  if (vectors.size() > 1) {
    rows.dims.push_back(b.blocked(static_cast<std::int64_t>(vectors.size()),
                                  "a row holds one element of each vector"));
  }
  b.output(std::move(rows));
  return b.bound();
}

}  // namespace

OpDefinition expanded_together() {
  return form("expanded_together()").passes().free();
}

OpDefinition at_least_each(std::string_view least) {
  return form("atleast_each(" + std::string(least) + ")").passes().free();
}

OpDefinition grid_of_vectors() { return form("grid()").passes().free(); }

OpDefinition rows_of_vectors() { return form("rows_of_vectors()").passes(); }

void words_of_grids(RuleWords& words) {
  words.form(shared_form("expanded_together()", bind_expanded_together));
  for (const std::size_t least : {1, 2, 3}) {
    words.form(shared_form("atleast_each(" + std::to_string(least) + ")",
                           [least](const OpCall& call) {
                             return bind_at_least_each(call, least);
                           }));
  }
  words.form(shared_form("grid()", bind_grid));
  words.form(shared_form("rows_of_vectors()", bind_rows));
}

}  // namespace shardprop

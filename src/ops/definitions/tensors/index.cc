// This file defines lookups and updates by index. If the table is sharded, each
// rank looks up its own rows and returns zeros for others, so the result is a
// plain sum.

#include "base/index.h"
#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/forms/indices.h"
#include "ops/forms/mapped.h"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>

namespace shardprop {
namespace {

// --- x[i, :, j] and its write ---

// `Indexing` describes the index tensors, which broadcast together. Their dims
// have the position of the first index if the indexed dims are adjacent.
// Otherwise they come first.
struct Indexing {
  std::vector<std::optional<std::size_t>> by_dim;  // operand that indexes it
  Dims shape;                                      // of the broadcast indices
  std::size_t place = 0;                           // index of their first dim
  std::size_t count = 0;                           // number of indexed dims
  bool one_run = true;
};

Indexing indexing_of(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const auto* list =
      std::get_if<std::vector<TensorArg>>(&call.op().arg("indices"));
  require(list != nullptr && list->size() <= self.shape().size(),
          "more indices than dims");
  Indexing out;
  out.by_dim.resize(self.shape().size());
  std::optional<std::size_t> last;
  for (std::size_t i = 0; i < list->size(); ++i) {
    if ((*list)[i].operand == TensorArg::kNone) continue;
    const auto operand = index((*list)[i].operand);
    const DType dtype = call.op().inputs[operand].dtype();
    if (dtype == DType::kBool || dtype == DType::kU8) {
      call_not_stated("a mask as index has no fixed result shape");
    }
    require(is_index(dtype), "an index is not of integers");
    out.shape = broadcast(out.shape, call.op().inputs[operand].shape());
    out.by_dim[i] = operand;
    if (!last) out.place = i;
    if (last && *last + 1 != i) out.one_run = false;
    last = i;
    ++out.count;
  }
  require(last.has_value(), "no index is given");
  if (!out.one_run) out.place = 0;
  return out;
}

// `Indexed` holds the operands of x[i] (self, the indices) and its result.
struct Indexed {
  Operand self;
  std::vector<Operand> indices;  // by operand
  Operand result;
  DimFactors over;    // the factors of the indexed dims
  DimFactors looked;  // the factors of the indices
};

Indexed bind_indexed(SpaceBuilder& b, const OpCall& call, const Indexing& by) {
  const TensorMeta& self = call.tensor("self");
  Indexed out;
  out.self = b.per_dim(self.shape());
  const Operand looked = b.per_dim(by.shape);
  for (const DimFactors& dim : looked.dims) {
    for (const FactorId id : dim) out.looked.push_back(id);
  }
  out.indices.resize(call.op().inputs.size());
  const auto insert = [&] {
    for (const DimFactors& dim : looked.dims) out.result.dims.push_back(dim);
  };
  if (!by.one_run) insert();
  for (std::size_t d = 0; d < by.by_dim.size(); ++d) {
    if (by.one_run && d == by.place) insert();
    if (!by.by_dim[d]) {
      out.result.dims.push_back(out.self.dims[d]);
      continue;
    }
    out.indices[*by.by_dim[d]] =
        b.aligned(looked, call.op().inputs[*by.by_dim[d]].shape());
    for (const FactorId id : out.self.dims[d]) out.over.push_back(id);
  }
  return out;
}

// Returns the strides of an elementwise result of self and the indices. Self
// has stride 0 along the dims of the indices, and the indices along all other
// dims.
Dims strides_of_lookup(const OpCall& call, const Dims& shape, DType dtype) {
  const Indexing by = indexing_of(call);
  const TensorMeta& self = call.tensor("self");
  Dims own;
  const auto stand_still = [&] { own.resize(own.size() + by.shape.size(), 0); };
  if (!by.one_run) stand_still();
  for (std::size_t d = 0; d < by.by_dim.size(); ++d) {
    if (by.one_run && d == by.place) stand_still();
    if (!by.by_dim[d]) own.push_back(self.strides()[d]);
  }
  std::vector<TensorMeta> operands = {make_meta(shape, own, dtype)};
  for (const std::optional<std::size_t>& operand : by.by_dim) {
    if (!operand) continue;
    const TensorMeta& looked = call.op().inputs[*operand];
    Dims strides(shape.size(), 0);
    const std::size_t end = by.place + by.shape.size();
    for (std::size_t d = 0; d < looked.shape().size(); ++d) {
      const std::size_t into = end - looked.shape().size() + d;
      if (looked.shape()[d] != 1) strides[into] = looked.strides()[d];
    }
    operands.push_back(make_meta(shape, std::move(strides), looked.dtype()));
  }
  return elementwise(operands, dtype).strides();
}

// The mask of a masked lookup broadcasts to the shape of the lookup.
Operand aligned_mask(SpaceBuilder& b, const OpCall& call,
                     const Indexed& indexed) {
  const TensorMeta& mask = call.tensor("mask");
  require(mask.dtype() == DType::kBool, "the mask is not of truth values");
  Dims shape;
  for (const DimFactors& dim : indexed.result.dims) {
    shape.push_back(b.space.size(dim));
  }
  require(broadcast(shape, mask.shape()) == shape,
          "the mask does not broadcast to what is looked up");
  return b.aligned(indexed.result, mask.shape());
}

// The result is x[i] if the mask is true, else a number.
BoundForm bind_masked_index(const OpCall& call) {
  const Indexing by = indexing_of(call);
  SpaceBuilder b;
  Indexed indexed = bind_indexed(b, call, by);
  b.block(indexed.over, "it is indexed", FactorKind::kIndexed);
  indexed.indices[call.operand("mask")] = aligned_mask(b, call, indexed);
  b.input(indexed.self);
  for (std::size_t i = 1; i < call.op().inputs.size(); ++i) {
    b.input(indexed.indices[i]);
  }
  b.output(indexed.result);
  // If the indexed operand is empty, the kernel returns an empty result even
  // when the result has elements.
  for (Factor& factor : b.space.factors) factor.least = 1;
  return b.bound();
}

BoundForm bind_index(const OpCall& call) {
  if (is_indexed_by_mask(call)) return bind_index_by_mask(call);
  const Indexing by = indexing_of(call);
  SpaceBuilder b;
  const Indexed indexed = bind_indexed(b, call, by);
  look_up_by_program(b.space, indexed.over);
  b.input(indexed.self);
  for (std::size_t i = 1; i < call.op().inputs.size(); ++i) {
    b.input(indexed.indices[i]);
  }
  b.output(indexed.result);
  b.without(0, indexed.over, kTermsOfSum);
  return b.bound();
}

constexpr std::string_view kIndex = R"(
local = local_indices(self, indices)
outside = outside(self, local)
rows = index(self, indices_or(local, outside, 0))
return masked_fill(rows, trailing(outside, dims_behind(self, indices)), 0))";

BoundForm bind_index_put(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const std::size_t values = call.operand("values");
  const bool masked = call.has("mask");
  const bool accumulate = masked || call.boolean_or("accumulate", false);
  const BoundResult result{
      .strides = dense_like(self, self.shape(), self.dtype()).strides()};
  require(call.tensor("values").dtype() == self.dtype(),
          "self and the values are of two dtypes");
  if (is_indexed_by_mask(call)) return bind_put_by_mask(call, result);
  SpaceBuilder b;
  const Indexing by = indexing_of(call);
  Indexed indexed = bind_indexed(b, call, by);
  const Dims written = [&] {
    Dims shape;
    for (const DimFactors& dim : indexed.result.dims) {
      shape.push_back(b.space.size(dim));
    }
    return shape;
  }();
  require(broadcast(written, call.tensor("values").shape()) == written,
          "the values do not broadcast to what is written");
  if (masked) {
    indexed.indices[call.operand("mask")] = aligned_mask(b, call, indexed);
  }
  if (masked) {
    b.block(indexed.over, "it is indexed", FactorKind::kIndexed);
  } else {
    look_up_by_program(b.space, indexed.over);
  }
  if (!accumulate) {
    b.block(indexed.looked, "later indices overwrite earlier ones");
  }
  for (std::size_t i = 0; i < call.op().inputs.size(); ++i) {
    b.input(i == 0 ? indexed.self
            : i == values
                ? b.aligned(indexed.result, call.tensor("values").shape())
                : indexed.indices[i]);
  }
  b.output(indexed.self, result);
  if (accumulate) {
    b.without(0, indexed.looked, kTermsOfSum);
    for (const FactorId id : indexed.looked) {
      b.space.inputs_without[0][index(id)] = kTermsOfSum;
    }
  }
  return b.bound();
}

void index_put_linearities(const OpCall& call, IndexSpace& space) {
  const bool adds = call.has("mask") || call.boolean_or("accumulate", false);
  pass_writes(call, space, adds ? Write::kAdd : Write::kReplace,
              call.operand("values"));
}

constexpr std::string_view kIndexPut = R"(
d = first_given(indices)
local = local_indices(self, indices)
outside = outside(self, local)
v = masked_fill(values, trailing(outside, dims_behind(self, indices)), 0) if accumulate
made = index_put(self, indices_or(local, outside, 0), v, True) if accumulate
wide = cat([self, narrow(self, d, 0, 1)], d) if not accumulate
wide = index_put(wide, indices_or(local, outside, local_size(self, d)), values) if not accumulate
made = clone(narrow(wide, d, 0, local_size(self, d))) if not accumulate
return made)";

}  // namespace

void words_of_index(RuleWords& words) {
  words.form(custom("index(indices)", bind_index));
  words.form(custom("index_put(indices)", bind_index_put));
  words.modifier("index_put_linearities()", index_put_linearities);
  words.form(custom("masked_index(indices)", bind_masked_index));
  words.form(custom("masked_index_put(indices)", bind_index_put));
  words.strides("lookup", strides_of_lookup);
}

void define_index(Family f) {
  f.add({"index", "_unsafe_index"},
        form("index(indices)")
            .strided("lookup")
            .passes({"self"})
            .below("indices", IndexBound::kListedDim)
            .per_rank(kIndex));
  f.add({"index_put", "_unsafe_index_put", "_index_put_impl"},
        form("index_put(indices)")
            .refine("index_put_linearities()")
            .selects({"self", "values"})
            .below("indices", IndexBound::kListedDim)
            .writes_into("self")
            .per_rank(kIndexPut));
  f.add("_unsafe_masked_index", form("masked_index(indices)")
                                    .selects({"self"})
                                    .below("indices", IndexBound::kListedDim));
  f.add("_unsafe_masked_index_put_accumulate",
        form("masked_index_put(indices)")
            .refine("index_put_linearities()")
            .below("indices", IndexBound::kListedDim));
}

}  // namespace shardprop

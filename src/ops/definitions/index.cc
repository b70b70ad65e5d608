// Lookups and updates by index. Over a sharded table each rank serves the
// rows it holds and leaves zeros elsewhere: the result is a plain sum.

#include "base/index.h"
#include "ops/definitions/families.h"
#include "ops/forms/indices.h"
#include "ops/forms/mapped.h"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>

namespace shardprop {
namespace {

constexpr Without kSum = Without::partial(ReduceOp::kSum);

// Sums and averages of the values at operand `values`, and of `self` with them.
void linear_in_values(const OpCall& call, IndexSpace& space,
                      std::initializer_list<std::size_t> operands) {
  for (const ReduceOp kind : {ReduceOp::kSum, ReduceOp::kAvg}) {
    std::vector<std::optional<ReduceOp>> inputs(space.inputs.size());
    for (const std::size_t i : operands) inputs[i] = kind;
    add_linearity(call, space, std::move(inputs), {kind});
  }
}

// --- Embedding ---

BoundForm bind_embedding(const OpCall& call) {
  const TensorMeta& weight = call.tensor("weight");
  const TensorMeta& indices = call.tensor("indices");
  require(weight.rank() == 2, "the table of an embedding has rank 2");
  require(is_index(indices.dtype()), "the indices are not integers");
  SpaceBuilder b;
  const Operand table = b.per_dim(weight.shape());
  const Operand where = b.per_dim(indices.shape());
  look_up_by_program(b.space, table.dims[0]);
  b.input(table);
  b.input(where);
  Operand rows = where;
  rows.dims.push_back(table.dims[1]);
  b.output(std::move(rows));
  b.without(0, table.dims[0], kSum);
  return b.bound();
}

constexpr std::string_view kEmbedding = R"(
local = indices - offset(weight, 0)
outside = (local < 0) | (local >= local_size(weight, 0))
rows = embedding(weight, masked_fill(local, outside, 0))
return masked_fill(rows, unsqueeze(outside, -1), 0))";

// Rows that are looked up are scaled where they lie.
constexpr std::string_view kEmbeddingRenorm = R"(
hit = isin(arange(local_size(self, 0)) + offset(self, 0), indices)
return where(unsqueeze(hit, 1), renorm(self, norm_type, 0, max_norm), self))";

void renormed_by_program(const OpCall& call, IndexSpace& space) {
  require(is_index(call.tensor("indices").dtype()),
          "the indices are not integers");
  for (Factor& factor : space.factors) {
    factor.program = ProgramUse::kWhenSharded;
  }
}

BoundForm bind_embedding_backward(const OpCall& call) {
  const TensorMeta& grad = call.tensor("grad_output");
  const TensorMeta& indices = call.tensor("indices");
  require(grad.rank() == indices.rank() + 1, "the gradient is not of rows");
  require(is_index(indices.dtype()), "the indices are not integers");
  SpaceBuilder b;
  const Operand whole = b.per_dim(grad.shape());
  Operand where = whole;
  where.dims.pop_back();
  for (int dim = 0; dim < indices.rank(); ++dim) {
    require(grad.size(dim) == indices.size(dim),
            "the gradient does not match the indices");
  }
  b.input(whole);
  b.input(where);
  Operand table;
  table.dims.push_back(b.blocked(call.integer("num_weights"),
                                 "rows are added up where indices say",
                                 FactorKind::kIndexed));
  look_up_by_program(b.space, table.dims[0]);
  table.dims.push_back(whole.dims.back());
  b.output(std::move(table));
  for (const DimFactors& dim : where.dims) b.without(0, dim, kSum);
  if (call.boolean("scale_grad_by_freq")) {
    for (const DimFactors& dim : where.dims) {
      b.block(dim, "each row is divided by how often it is looked up");
    }
  }
  return b.bound();
}

// A row behind those that the rank holds takes the gradients of others, as that
// of the padding.
constexpr std::string_view kEmbeddingBackward = R"(
local = indices - offset(out, 0)
outside = (local < 0) | (local >= local_size(out, 0)) | (indices == padding_idx)
at = masked_fill(local, outside, local_size(out, 0))
made = embedding_dense_backward(grad_output, at, local_size(out, 0) + 1, local_size(out, 0), scale_grad_by_freq)
return narrow(made, 0, 0, local_size(out, 0)))";

// --- Along one dim: programs of forms/indexed.cc ---

constexpr std::string_view kGather = R"(
local = index - offset(self, dim)
outside = (local < 0) | (local >= local_size(self, dim))
values = gather(self, dim, masked_fill(local, outside, 0))
return masked_fill(values, outside, 0))";

// Where each row names one element, all of them, a comparison finds it. Else what
// the rank does not hold is written to a row of its own, which is cut off.
constexpr std::string_view kScatterSource = R"(
single = size(index, dim) == 1
single = single * (numel(index) * size(self, dim) == numel(self)) * (numel(src) == numel(index)) == 1
hit = index == trailing(places(self, dim), rank(self) - 1 - wrap(self, dim)) if single
made = where(hit, src, self) if single
local = index - offset(self, dim) if not single
outside = (local < 0) | (local >= local_size(self, dim)) if not single
wide = cat([self, narrow(self, dim, 0, 1)], dim) if not single
wide = scatter(wide, dim, masked_fill(local, outside, local_size(self, dim)), src) if not single
made = clone(narrow(wide, dim, 0, local_size(self, dim))) if not single
return made)";

constexpr std::string_view kScatterValue = R"(
single = size(index, dim) == 1
single = single * (numel(index) * size(self, dim) == numel(self)) == 1
hit = index == trailing(places(self, dim), rank(self) - 1 - wrap(self, dim)) if single
made = masked_fill(self, hit, value) if single
local = index - offset(self, dim) if not single
outside = (local < 0) | (local >= local_size(self, dim)) if not single
wide = cat([self, narrow(self, dim, 0, 1)], dim) if not single
wide = scatter(wide, dim, masked_fill(local, outside, local_size(self, dim)), value=value) if not single
made = clone(narrow(wide, dim, 0, local_size(self, dim))) if not single
return made)";

// Nothing is added where the rank does not hold what is added to.
constexpr std::string_view kScatterAdd = R"(
fits = numel(src) == numel(index)
local = index - offset(self, dim)
outside = (local < 0) | (local >= local_size(self, dim))
added = masked_fill(src, outside, 0) if fits
made = scatter_add(self, dim, masked_fill(local, outside, 0), added) if fits
wide = cat([self, narrow(self, dim, 0, 1)], dim) if not fits
wide = scatter_add(wide, dim, masked_fill(local, outside, local_size(self, dim)), src) if not fits
made = clone(narrow(wide, dim, 0, local_size(self, dim))) if not fits
return made)";

// What is written with a row behind those that the rank holds, which takes what
// it does not hold and is cut off.
std::string to_spare_row(std::string_view written) {
  return "local = index - offset(self, dim)\n"
         "outside = (local < 0) | (local >= local_size(self, dim))\n"
         "at = masked_fill(local, outside, local_size(self, dim))\n"
         "wide = cat([self, narrow(self, dim, 0, 1)], dim)\n"
         "wide = " +
         std::string(written) +
         "\nreturn clone(narrow(wide, dim, 0, local_size(self, dim)))";
}

constexpr std::string_view kIndexAdd = R"(
local = index - offset(self, dim)
outside = (local < 0) | (local >= local_size(self, dim))
added = masked_fill(source, trailing(outside, rank(self) - 1 - wrap(self, dim)), 0)
return index_add(self, dim, masked_fill(local, outside, 0), added, alpha=alpha))";

// Which row of the source each row is, if any; -1 and less where none is.
constexpr std::string_view kIndexCopy = R"(
local = index - offset(self, dim)
outside = (local < 0) | (local >= local_size(self, dim))
none = neg(arange(local_size(self, dim) + 1)) - 1
owner = index_copy(none, 0, masked_fill(local, outside, local_size(self, dim)), arange(numel(index)))
owner = narrow(owner, 0, 0, local_size(self, dim))
kept = owner < 0
rows = index_select(source, dim, masked_fill(owner, kept, 0))
return where(trailing(kept, rank(self) - 1 - wrap(self, dim)), self, rows))";

constexpr std::string_view kIndexFill = R"(
local = remainder(index, size(self, dim)) - offset(self, dim)
outside = (local < 0) | (local >= local_size(self, dim))
none = arange(local_size(self, dim) + 1) < 0
hit = index_fill(none, 0, masked_fill(local, outside, local_size(self, dim)), True)
hit = narrow(hit, 0, 0, local_size(self, dim))
return masked_fill(self, trailing(hit, rank(self) - 1 - wrap(self, dim)), value))";

constexpr std::string_view kIndexSelect = R"(
local = index - offset(self, dim)
outside = (local < 0) | (local >= local_size(self, dim))
rows = index_select(self, dim, masked_fill(local, outside, 0))
return masked_fill(rows, trailing(outside, rank(self) - 1 - wrap(self, dim)), 0))";

// --- x[i, :, j] and its write ---

// The index tensors broadcast together; their dims stand where the first one
// was when they are neighbours, in front otherwise.
struct Indexing {
  std::vector<std::optional<std::size_t>> by_dim;  // operand that indexes it
  Dims shape;                                      // of the indices together
  std::size_t place = 0;                           // where their dims stand
  std::size_t count = 0;                           // dims that are indexed
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

// Operands of x[i]: self, the indices, and what x[i] looks like.
struct Indexed {
  Operand self;
  std::vector<Operand> indices;  // by operand
  Operand result;
  DimFactors over;    // the factors of the indexed dims
  DimFactors looked;  // those of the indices
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

// x[i] is laid out as an elementwise result of self, which stands still along
// the dims of the indices, and of the indices, which do along all others.
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

// The mask of a masked lookup broadcasts to what is looked up.
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

// x[i] where the mask holds, a number elsewhere.
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
  // Of nothing its kernel makes nothing, whatever the sizes of other dims.
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
  b.without(0, indexed.over, kSum);
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
  SpaceBuilder b;
  const auto* list =
      std::get_if<std::vector<TensorArg>>(&call.op().arg("indices"));
  bool masks = false;
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    if ((*list)[i].operand == TensorArg::kNone) continue;
    const DType dtype = call.op().inputs[index((*list)[i].operand)].dtype();
    require(is_index(dtype) || is_mask(dtype),
            "an index is neither of integers nor a mask");
    masks = masks || is_mask(dtype);
  }
  const BoundResult result{
      .strides = dense_like(self, self.shape(), self.dtype()).strides()};
  require(call.tensor("values").dtype() == self.dtype(),
          "self and the values are of two dtypes");
  if (masks) {
    require(list->size() <= self.shape().size(), "more indices than dims");
    for (const TensorMeta& meta : call.op().inputs) {
      b.input(SpaceBuilder::whole(meta.rank()));
    }
    Operand whole = b.per_dim(self.shape());
    for (const DimFactors& dim : whole.dims) b.block(dim, "a mask says where");
    b.space.inputs[0] = whole;
    b.output(std::move(whole), result);
    return b.bound();
  }
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
    b.without(0, indexed.looked, kSum);
    for (const FactorId id : indexed.looked) {
      b.space.inputs_without[0][index(id)] = kSum;
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

BoundForm bind_one_hot(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const std::int64_t classes = call.integer("num_classes");
  require(classes > 0, "the number of classes depends on the data");
  SpaceBuilder b;
  Operand whole = b.per_dim(self.shape());
  b.input(whole);
  whole.dims.push_back(b.blocked(classes, "the classes are compared with all"));
  b.output(std::move(whole));
  return b.bound();
}

constexpr std::string_view kOneHot = R"(
return cast(unsqueeze(self, -1) == places(out, rank(self)), dtype(out)))";

// No dim of it can be cut.
std::function<void(const OpCall&, IndexSpace&)> whole(std::string_view reason) {
  return [reason = std::string(reason)](const OpCall&, IndexSpace& space) {
    for (Factor& factor : space.factors) {
      factor.kind = FactorKind::kBlocked;
      factor.reason = reason;
    }
  };
}

// The source is taken in the order of the elements: of shards of the first dim,
// behind what the ranks before take.
constexpr std::string_view kMaskedScatter = R"(
m = bitwise_or(mask, zeros_like(self, dtype=dtype(mask)))
taken = all_gather(unsqueeze(sum(m), 0))
starts = all_gather(full([1], offset(self, 0)))
before = sum(masked_fill(taken, starts >= offset(self, 0), 0))
own = remainder(arange(numel(source)) + before, numel(source))
return masked_scatter(self, m, index_select(reshape(source, [-1]), 0, own)))";

void taken_in_order(const OpCall& call, IndexSpace& space) {
  require(call.tensor("mask").dtype() == DType::kBool,
          "the mask is not of truth values");
  require(call.tensor("source").dtype() == call.first().dtype(),
          "the source is of another dtype");
  whole("the source is taken in order")(call, space);
  const TensorMeta& self = call.first();
  const bool broadcasts =
      call.op().outputs.empty() || self.shape() != call.op().outputs[0].shape();
  if (self.rank() == 0 || broadcasts) return;
  for (const FactorId id : space.inputs[0].dims[0]) {
    space.factor(id).program = ProgramUse::kWhenSharded;
  }
}

// The gradient of the source: what the mask selects, in order, then zeros.
std::string selected_in_order(const OpCall& call) {
  require(call.tensor("mask").dtype() == DType::kBool,
          "the mask is not of truth values");
  std::string term;
  for (std::size_t d = 0; d < call.integers("sizes").size(); ++d) {
    require(d < 26, "the source has more dims than there are letters");
    term += static_cast<char>('a' + d);
  }
  return "*,*->[" + term + ']';
}

std::int64_t size_in_order(const OpCall& call, char letter) {
  return call.integers("sizes")[index(letter - 'a')];
}

void sum_of_table(const OpCall& call, IndexSpace& space) {
  linear_in_values(call, space, {0});
}

}  // namespace

void define_index(Family f) {
  f.add("embedding", custom("ve,...->...e", bind_embedding)
                         .refine("rows()", sum_of_table)
                         .refine("", below("indices", rows_of_weight))
                         .per_rank(kEmbedding));
  f.add("embedding_renorm", mapped("v[e],*->v[e]")
                                .refine("", renormed_by_program)
                                .like("self")
                                .writes_into("self")
                                .per_rank(kEmbeddingRenorm));
  f.add("embedding_dense_backward",
        custom("...e,...->ve", bind_embedding_backward)
            .refine("", sum_of_table)
            .per_rank(kEmbeddingBackward)
            .refine("", below("indices", [](const OpSchema& op, std::size_t) {
                      return op.int_arg("num_weights").value_or(1);
                    })));
  f.add("gather", gathered().per_rank(kGather));
  f.add({"scatter", "scatter.src"}, scattered()
                                        .passes({"self", "src"})
                                        .writes_into("self")
                                        .per_rank(kScatterSource));
  f.add("scatter.value", scattered()
                             .refine("", selects({"self"}))
                             .writes_into("self")
                             .per_rank(kScatterValue));
  f.add("scatter_add", scattered().writes_into("self").per_rank(kScatterAdd));
  f.add("scatter.reduce", scattered().writes_into("self").per_rank(to_spare_row(
                              "scatter(wide, dim, at, src, reduce=reduce)")));
  f.add("scatter.value_reduce",
        scattered().writes_into("self").per_rank(to_spare_row(
            "scatter(wide, dim, at, value=value, reduce=reduce)")));
  f.add("scatter_reduce", scattered().writes_into("self").per_rank(to_spare_row(
                              "scatter_reduce(wide, dim, at, src, reduce, "
                              "include_self=include_self)")));
  f.add("index_select", selected_along().per_rank(kIndexSelect));
  f.add("index_add", written_along().writes_into("self").per_rank(kIndexAdd));
  f.add("index_copy", written_along().writes_into("self").per_rank(kIndexCopy));
  f.add("index_reduce",
        written_along().writes_into("self").per_rank(
            to_spare_row("index_reduce(wide, dim, at, source, reduce, "
                         "include_self=include_self)")));
  f.add("index_fill",
        written_along().like("self").writes_into("self").per_rank(kIndexFill));
  f.add({"index", "_unsafe_index"},
        custom("index(indices)", bind_index)
            .strided(strides_of_lookup)
            .passes({"self"})
            .refine("", below("indices", size_of_indexed_dim))
            .per_rank(kIndex));
  f.add({"index_put", "_unsafe_index_put", "_index_put_impl"},
        custom("index_put(indices)", bind_index_put)
            .refine("", index_put_linearities)
            .refine("", selects({"self", "values"}))
            .refine("", below("indices", size_of_indexed_dim))
            .writes_into("self")
            .per_rank(kIndexPut));
  f.add("_unsafe_masked_index",
        custom("masked_index(indices)", bind_masked_index)
            .refine("", selects({"self"}))
            .refine("", below("indices", size_of_indexed_dim)));
  f.add("_unsafe_masked_index_put_accumulate",
        custom("masked_index_put(indices)", bind_index_put)
            .refine("", index_put_linearities)
            .refine("", below("indices", size_of_indexed_dim)));
  f.add("one_hot",
        custom("one_hot()", bind_one_hot)
            .typed(DType::kI64)
            .per_rank(kOneHot, FactorKind::kBlocked)
            .refine("", below("self", [](const OpSchema& op, std::size_t) {
                      return op.int_arg("num_classes").value_or(1);
                    })));
  f.add("masked_scatter", mapped("...,...,*->...")
                              .refine("", taken_in_order)
                              .per_rank(kMaskedScatter));
  f.add("masked_scatter_backward",
        mapped("selected(sizes)", selected_in_order, size_in_order)
            .linear_in("grad_output"),
        "replicated: what a mask selects lies in the order of all elements");
}

}  // namespace shardprop

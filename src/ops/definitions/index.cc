// Lookups and updates by index. Over a sharded table each rank serves the
// rows it holds and leaves zeros elsewhere: the result is a plain sum.

#include "ops/definitions/families.h"

#include <algorithm>

namespace shardprop {
namespace {

constexpr Without kSum = Without::partial(ReduceOp::kSum);

bool is_index(DType dtype) {
  return dtype == DType::kI64 || dtype == DType::kI32;
}

// Local indices are shifted, and index 0 must exist.
void by_program(IndexSpace& space, const DimFactors& factors) {
  for (const FactorId id : factors) {
    space.factor(id).kind = FactorKind::kIndexed;
    space.factor(id).program = ProgramUse::kWhenSharded;
    space.factor(id).nonempty = true;
  }
}

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
  by_program(b.space, table.dims[0]);
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

BoundForm bind_embedding_backward(const OpCall& call) {
  const TensorMeta& grad = call.tensor("grad_output");
  const TensorMeta& indices = call.tensor("indices");
  require(grad.rank() == indices.rank() + 1, "the gradient is not of rows");
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
  table.dims.push_back(whole.dims.back());
  b.output(std::move(table));
  for (const DimFactors& dim : where.dims) b.without(0, dim, kSum);
  return b.bound();
}

// --- gather and scatter: dims other than `dim` are alike where sizes agree ---

struct Dimwise {
  int dim = 0;
  Operand self;   // with `dim`
  Operand index;  // without it
};

Dimwise dimwise(SpaceBuilder& b, const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& looked = call.tensor("index");
  require(is_index(looked.dtype()), "the index is not of integers");
  require(std::max(self.rank(), 1) == std::max(looked.rank(), 1) ||
              looked.numel() == 0,
          "the index has another rank");
  Dimwise out;
  out.dim = call.dim("dim", self.rank());
  out.self = SpaceBuilder::whole(self.rank());
  out.index = SpaceBuilder::whole(looked.rank());
  if (looked.rank() != self.rank()) {
    for (int d = 0; d < self.rank(); ++d) {
      out.self.dims[index(d)] = b.blocked(self.size(d), "there is no index");
    }
    return out;
  }
  for (int d = 0; d < self.rank(); ++d) {
    if (d == out.dim) {
      out.self.dims[index(d)] = b.dim(self.size(d));
    } else if (self.size(d) == looked.size(d)) {
      out.self.dims[index(d)] = b.dim(self.size(d));
      out.index.dims[index(d)] = out.self.dims[index(d)];
    } else {
      require(looked.size(d) <= self.size(d), "the index is larger than self");
      out.self.dims[index(d)] =
          b.blocked(self.size(d), "the index covers a part of it");
    }
  }
  return out;
}

BoundForm bind_gather(const OpCall& call) {
  const TensorMeta& looked = call.tensor("index");
  require(call.overload() != "dimname", "named dims are not supported");
  SpaceBuilder b;
  Dimwise shared = dimwise(b, call);
  const bool scalar = shared.self.dims.empty();
  if (!scalar && looked.rank() > 0 &&
      looked.rank() == call.tensor("self").rank()) {
    shared.index.dims[index(shared.dim)] = b.dim(looked.size(shared.dim));
  }
  b.input(shared.self);
  b.input(shared.index);
  b.output(shared.index, {.shape = looked.shape()});
  if (!scalar) {
    const DimFactors& over = shared.self.dims[index(shared.dim)];
    by_program(b.space, over);
    b.without(0, over, kSum);
  }
  return b.bound();
}

constexpr std::string_view kGather = R"(
local = index - offset(self, dim)
outside = (local < 0) | (local >= local_size(self, dim))
values = gather(self, dim, masked_fill(local, outside, 0))
return masked_fill(values, outside, 0))";

// Over a sharded dim, each row may name one element: then a comparison finds
// it without a scatter that would write out of bounds.
BoundForm bind_scatter(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& looked = call.tensor("index");
  SpaceBuilder b;
  const Dimwise shared = dimwise(b, call);
  const TensorMeta* src =
      call.has("src") ? call.optional_tensor("src") : nullptr;
  bool single = looked.rank() == self.rank() && self.rank() > 0 &&
                looked.size(shared.dim) == 1 &&
                !call.op().function->argument_index("reduce");
  for (int d = 0; d < self.rank() && single; ++d) {
    // Every row must be named: a shorter index leaves rows untouched.
    single = d == shared.dim || looked.size(d) == self.size(d);
  }
  Operand source = shared.index;
  if (src != nullptr) {
    require(src->rank() == looked.rank() || looked.numel() == 0,
            "the source has another rank");
    source.dims.resize(index(src->rank()));
    for (int d = 0; d < src->rank() && src->rank() == looked.rank(); ++d) {
      require(src->size(d) >= looked.size(d),
              "the source is smaller than the index");
      if (src->size(d) == looked.size(d)) continue;
      // Of a longer source the first elements are taken: chunks would not
      // line up with those of the index.
      b.block(shared.index.dims[index(d)],
              "the source is longer than the index");
      source.dims[index(d)].clear();
      single = false;
    }
  }
  const auto arguments = call.op().function->arguments();
  for (const ArgumentSchema& argument : arguments) {
    if (!argument.is_tensor() || !call.has(argument.name)) continue;
    if (!call.op().tensor_arg(argument.name)) continue;
    b.input(argument.name == "self"    ? shared.self
            : argument.name == "index" ? shared.index
                                       : source);
  }
  b.output(shared.self, {.shape = self.shape()});
  if (self.rank() > 0 && looked.rank() == self.rank()) {
    const DimFactors& over = shared.self.dims[index(shared.dim)];
    if (single) {
      by_program(b.space, over);
    } else {
      b.block(over, "its rows are scattered to by several indices",
              FactorKind::kIndexed);
    }
  }
  return b.bound();
}

constexpr std::string_view kScatterSource = R"(
hit = index - offset(self, dim) == trailing(arange(local_size(self, dim)), rank(self) - 1 - wrap(self, dim))
return where(hit, src, self))";

constexpr std::string_view kScatterValue = R"(
hit = index - offset(self, dim) == trailing(arange(local_size(self, dim)), rank(self) - 1 - wrap(self, dim))
return masked_fill(self, hit, value))";

// --- One dim by a vector of indices ---

BoundForm bind_index_select(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& chosen = call.tensor("index");
  require(call.overload() == "default" && chosen.rank() <= 1,
          "the index is not a vector");
  SpaceBuilder b;
  Operand whole = b.per_dim(self.shape());
  const int dim = call.dim("dim", self.rank());
  b.input(whole);
  b.input(b.per_dim(chosen.shape()));
  if (self.rank() == 0) {
    b.output(std::move(whole));
    return b.bound();
  }
  const DimFactors over = whole.dims[index(dim)];
  by_program(b.space, over);
  whole.dims[index(dim)] =
      chosen.rank() == 1 ? b.space.inputs[1].dims[0] : DimFactors{};
  b.output(std::move(whole));
  b.without(0, over, kSum);
  return b.bound();
}

constexpr std::string_view kIndexSelect = R"(
local = index - offset(self, dim)
outside = (local < 0) | (local >= local_size(self, dim))
rows = index_select(self, dim, masked_fill(local, outside, 0))
return masked_fill(rows, trailing(outside, rank(self) - 1 - wrap(self, dim)), 0))";

// self changed along `dim` where a vector of indices says.
BoundForm bind_index_written(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  SpaceBuilder b;
  const Operand whole = b.per_dim(self.shape());
  const int dim = call.dim("dim", self.rank());
  Operand source = whole;
  if (self.rank() > 0) {
    b.block(whole.dims[index(dim)], "it is written where indices say",
            FactorKind::kIndexed);
    source.dims[index(dim)].clear();
  }
  for (std::size_t i = 0; i < call.op().inputs.size(); ++i) {
    const TensorMeta& meta = call.op().inputs[i];
    const bool is_index_vector = i == call.operand("index");
    bool alike = !is_index_vector && meta.rank() == self.rank() && i > 0;
    for (int d = 0; d < self.rank() && alike; ++d) {
      alike = d == dim || meta.size(d) == self.size(d);
    }
    b.input(i == 0 ? whole : alike ? source : SpaceBuilder::whole(meta.rank()));
    if (i > 0 && !is_index_vector && !alike) {
      for (const DimFactors& factors : whole.dims) {
        b.block(factors, "the source is of another shape");
      }
    }
  }
  b.output(whole,
           {.strides = dense_like(self, self.shape(), self.dtype()).strides()});
  return b.bound();
}

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
    const auto operand = static_cast<std::size_t>((*list)[i].operand);
    require(is_index(call.op().inputs[operand].dtype()),
            "a mask as index has no fixed result shape");
    out.shape = broadcast(out.shape, call.op().inputs[operand].shape());
    out.by_dim[i] = operand;
    if (!last) out.place = i;
    if (last && *last + 1 != i) out.one_run = false;
    last = i;
    ++out.count;
  }
  require(last.has_value(), "there is no index");
  if (!out.one_run) out.place = 0;
  return out;
}

// Operands of x[i]: self, the indices, and what x[i] looks like.
struct Indexed {
  Operand self;
  std::vector<Operand> indices;  // by operand
  Operand result;
  DimFactors over;    // the factor of a lone indexed dim
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
    if (by.count == 1) {
      out.over = out.self.dims[d];
    } else {
      b.block(out.self.dims[d], "several indices go with it",
              FactorKind::kIndexed);
    }
  }
  return out;
}

BoundForm bind_index(const OpCall& call) {
  const Indexing by = indexing_of(call);
  SpaceBuilder b;
  const Indexed indexed = bind_indexed(b, call, by);
  by_program(b.space, indexed.over);
  b.input(indexed.self);
  for (std::size_t i = 1; i < call.op().inputs.size(); ++i) {
    b.input(indexed.indices[i]);
  }
  b.output(indexed.result);
  b.without(0, indexed.over, kSum);
  return b.bound();
}

constexpr std::string_view kIndex = R"(
local = remainder(given(indices), size(self, first_given(indices))) - offset(self, first_given(indices))
outside = (local < 0) | (local >= local_size(self, first_given(indices)))
rows = index(self, indices_at(first_given(indices), masked_fill(local, outside, 0)))
return masked_fill(rows, trailing(outside, rank(self) - 1 - first_given(indices)), 0))";

BoundForm bind_index_put(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const std::size_t values = call.operand("values");
  const bool accumulate = call.boolean_or("accumulate", false);
  SpaceBuilder b;
  const auto* list =
      std::get_if<std::vector<TensorArg>>(&call.op().arg("indices"));
  bool masks = false;
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    if ((*list)[i].operand == TensorArg::kNone) continue;
    const DType dtype = call.op().inputs[index((*list)[i].operand)].dtype();
    masks = masks || !is_index(dtype);
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
  if (accumulate && by.count == 1 && by.one_run) {
    by_program(b.space, indexed.over);
  } else {
    b.block(indexed.over, "it is indexed", FactorKind::kIndexed);
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
  if (!call.boolean_or("accumulate", false)) return;
  linear_in_values(call, space, {call.operand("self"), call.operand("values")});
}

constexpr std::string_view kIndexPut = R"(
local = remainder(given(indices), size(self, first_given(indices))) - offset(self, first_given(indices))
outside = (local < 0) | (local >= local_size(self, first_given(indices)))
v = masked_fill(values, trailing(outside, rank(self) - 1 - first_given(indices)), 0)
return index_put(self, indices_at(first_given(indices), masked_fill(local, outside, 0)), v, True))";

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

void sum_of_table(const OpCall& call, IndexSpace& space) {
  linear_in_values(call, space, {0});
}

}  // namespace

void define_index(Family f) {
  f.add("embedding", custom("ve,...->...e", bind_embedding)
                         .refine("rows()", sum_of_table)
                         .per_rank(kEmbedding));
  f.add(
      "embedding_dense_backward",
      custom("...e,...->ve", bind_embedding_backward).refine("", sum_of_table));
  f.add("gather",
        custom("gather(dim)", bind_gather).passes({"self"}).per_rank(kGather));
  f.add({"scatter", "scatter.src"}, custom("scatter(dim)", bind_scatter)
                                        .passes({"self", "src"})
                                        .writes_into("self")
                                        .per_rank(kScatterSource));
  f.add("scatter.value", custom("scatter(dim)", bind_scatter)
                             .writes_into("self")
                             .per_rank(kScatterValue));
  f.add({"scatter.reduce", "scatter.value_reduce", "scatter_add",
         "scatter_reduce"},
        custom("scatter(dim)", bind_scatter).writes_into("self"));
  f.add("index_select", custom("index_select(dim)", bind_index_select)
                            .passes({"self"})
                            .per_rank(kIndexSelect));
  f.add({"index_add", "index_copy"},
        custom("index_written(dim)", bind_index_written).writes_into("self"));
  f.add("index_fill", custom("index_written(dim)", bind_index_written));
  f.add({"index", "_unsafe_index"},
        custom("index(indices)", bind_index).passes({"self"}).per_rank(kIndex));
  f.add({"index_put", "_unsafe_index_put"},
        custom("index_put(indices)", bind_index_put)
            .refine("", index_put_linearities)
            .writes_into("self")
            .per_rank(kIndexPut));
  f.add("one_hot", custom("one_hot()", bind_one_hot).typed(DType::kI64));
  f.add("masked_scatter",
        pointwise_into("self").refine("", [](const OpCall&, IndexSpace& space) {
          for (Factor& factor : space.factors) {
            factor.kind = FactorKind::kBlocked;
            factor.reason = "the source is taken in order";
          }
        }));
}

}  // namespace shardprop

// Where values lie among others, and counts of them.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"
#include "ops/forms/mapped.h"

#include <algorithm>

namespace shardprop {
namespace {

DType of_position(const OpCall& call, std::size_t) {
  return call.boolean_or("out_int32", false) ? DType::kI32 : DType::kI64;
}

std::string searchsorted_notation(const OpCall& call) {
  if (call.overload() == "Scalar") return "[s],[s]->";
  return call.tensor("sorted_sequence").rank() == 1
             ? "[s],...,[s]->..."
             : "...[s],...v,...[s]->...v";
}

// Self and indices broadcast in all dims but `dim`, in which self is whole;
// without `dim` both are one row.
std::string take_along_notation(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& indices = call.tensor("indices");
  if (!call.op().int_arg("dim")) return "*,*->[s]";
  require(self.rank() == indices.rank() && self.rank() > 0,
          "self and indices have different ranks");
  const int dim = call.dim("dim", self.rank());
  std::string from;
  std::string where;
  std::string result;
  for (int d = 0; d < self.rank(); ++d) {
    const char letter = static_cast<char>('a' + d);
    require(d < 26, "more dims than letters");
    const bool along = d == dim;
    const bool repeats = self.size(d) == 1 && indices.size(d) != 1;
    from += along || repeats ? '_' : letter;
    where += !along && indices.size(d) == 1 && self.size(d) != 1 ? '_' : letter;
    result += letter;
  }
  return from + ',' + where + "->" + result;
}

std::int64_t all_indices(const OpCall& call, char) {
  return call.tensor("indices").numel();
}

// Counts between two bounds add up; without bounds they depend on all values.
BoundForm bind_histogram(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const std::int64_t bins = call.integer("bins");
  require(bins > 0, "there are no bins");
  const double low = call.op().float_arg("min").value_or(0);
  const double high = call.op().float_arg("max").value_or(0);
  SpaceBuilder b;
  const Operand whole = b.per_dim(self.shape());
  b.input(whole);
  b.output(SpaceBuilder::whole(1), {.shape = Dims{bins}});
  for (const DimFactors& dim : whole.dims) {
    if (low < high) {
      b.without(0, dim, Without::partial(ReduceOp::kSum));
    } else {
      b.block(dim, "the bounds are those of all values");
    }
  }
  return b.bound();
}

// Of n bins, given by n + 1 edges or by a count and a range: weights (or ones)
// add up in each; the edges are no sum. A density divides by the sum of all.
BoundForm bind_weighted_histogram(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta* weight = call.optional_tensor("weight");
  require(is_floating(self.dtype()), "the values are no floats");
  require(weight == nullptr || (weight->shape() == self.shape() &&
                                weight->dtype() == self.dtype()),
          "there is not one weight per value");
  const bool has_edges = call.overload() == "bins_tensor";
  const auto* range =
      has_edges ? nullptr
                : std::get_if<std::vector<double>>(&call.op().arg("range"));
  std::int64_t bins = 0;
  if (has_edges) {
    const TensorMeta& edges = call.tensor("bins");
    require(
        edges.rank() == 1 && edges.numel() > 0 && edges.dtype() == self.dtype(),
        "the edges are no vector of the values' dtype");
    bins = edges.numel() - 1;
  } else {
    bins = call.integer("bins");
    require(bins > 0, "there are no bins");
    require(range == nullptr || range->size() == 2,
            "a range is a lower and an upper bound");
  }
  SpaceBuilder b;
  const Operand whole = b.per_dim(self.shape());
  b.input(whole);
  if (has_edges) b.input(SpaceBuilder::whole(1));
  if (weight != nullptr) b.input(whole);
  b.output(SpaceBuilder::whole(1), {.shape = Dims{bins}});
  b.output(SpaceBuilder::whole(1), {.shape = Dims{bins + 1}});
  for (const DimFactors& dim : whole.dims) {
    if (call.boolean("density")) {
      b.block(dim, "each count is divided by the sum of all");
    } else if (!has_edges && (range == nullptr || (*range)[0] == (*range)[1])) {
      b.block(dim, "the bounds are those of all values");
    } else {
      b.without(0, dim, Without::partial(ReduceOp::kSum));
      b.without(1, dim, Without::same());
    }
  }
  return b.bound();
}

// Points with a coordinate for each dim of the histogram; else as above.
BoundForm bind_histogram_of_points(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta* weight = call.optional_tensor("weight");
  require(is_floating(self.dtype()) && self.rank() >= 2,
          "the points are no floats, or no rows");
  Dims points = self.shape();
  const std::int64_t coordinates = points.back();
  points.pop_back();
  require(weight == nullptr ||
              (weight->shape() == points && weight->dtype() == self.dtype()),
          "there is not one weight per point");
  const bool has_edges = call.base_name() == "_histogramdd_from_bin_tensors";
  Dims bins;
  bool bounded = true;
  if (has_edges) {
    for (const TensorMeta& edges : call.tensors("bins")) {
      require(edges.rank() == 1 && edges.numel() > 0 &&
                  edges.dtype() == self.dtype(),
              "the edges are no vectors of the points' dtype");
      bins.push_back(edges.numel() - 1);
    }
  } else {
    bins = dims_of(call.integers("bins"));
    for (const std::int64_t count : bins) {
      require(count > 0, "there are no bins");
    }
    const auto* range =
        std::get_if<std::vector<double>>(&call.op().arg("range"));
    require(range == nullptr ||
                range->size() == 2 * static_cast<std::size_t>(coordinates),
            "a range is a lower and an upper bound for each coordinate");
    bounded = range != nullptr;
  }
  require(static_cast<std::int64_t>(bins.size()) == coordinates,
          "there is not one number of bins per coordinate");
  SpaceBuilder b;
  const Operand whole = b.per_dim(self.shape());
  Operand by_point = whole;
  by_point.dims.pop_back();
  b.input(whole);
  if (has_edges) {
    for (std::size_t i = 0; i < bins.size(); ++i) {
      b.input(SpaceBuilder::whole(1));
    }
  }
  if (weight != nullptr) b.input(by_point);
  const bool edges_alone = call.base_name() == "_histogramdd_bin_edges";
  if (edges_alone) {
    for (const std::int64_t count : bins) {
      b.output(SpaceBuilder::whole(1), {.shape = Dims{count + 1}});
    }
  } else {
    b.output(SpaceBuilder::whole(bins.size()), {.shape = bins});
  }
  b.block(whole.dims.back(), "a point is one of the histogram's places");
  for (const DimFactors& dim : by_point.dims) {
    if (!bounded) {
      b.block(dim, "the bounds are those of all points");
    } else if (edges_alone) {
      for (std::size_t i = 0; i < bins.size(); ++i) {
        b.without(i, dim, Without::same());
      }
    } else if (call.boolean("density")) {
      b.block(dim, "each count is divided by the sum of all");
    } else {
      b.without(0, dim, Without::partial(ReduceOp::kSum));
    }
  }
  return b.bound();
}

// segment_reduce: rows of dim `axis` in runs of given lengths, or between given
// offsets; the dims before it have runs of their own.
std::string segments_notation(const OpCall& call) {
  const TensorMeta& data = call.tensor("data");
  require(data.rank() > 0 && data.rank() < 20,
          "the data has no dim for segments, or too many dims");
  require(is_floating(data.dtype()), "the data is of no floats");
  require(!call.has("indices") || call.optional_tensor("indices") == nullptr,
          "segments by indices are not supported");
  const TensorMeta* lengths = call.optional_tensor("lengths");
  const TensorMeta* offsets = call.optional_tensor("offsets");
  const TensorMeta* by = offsets != nullptr ? offsets : lengths;
  require(by != nullptr, "neither lengths nor offsets are given");
  const int axis = call.dim("axis", data.rank());
  for (const TensorMeta* one : {lengths, offsets}) {
    require(one == nullptr ||
                (one->rank() == axis + 1 &&
                 (one->dtype() == DType::kI32 || one->dtype() == DType::kI64)),
            "lengths and offsets are integers whose last dim is the axis");
  }
  std::string before;
  std::string after;
  for (int d = 0; d < data.rank(); ++d) {
    if (d < axis) before += static_cast<char>('a' + d);
    if (d > axis) after += static_cast<char>('a' + d);
  }
  const std::string rows = before + "[x]" + after;
  const std::string runs = before + "[y]" + after;
  const std::string sides = ',' + before + "[v]";
  if (call.has("grad")) {
    return runs + ',' + runs + ',' + rows + sides + ',' + before + "[w]->" +
           rows;
  }
  return rows + sides + ",[u]," + before + "[w]->" + runs;
}

std::int64_t segments_size(const OpCall& call, char) {
  const TensorMeta* offsets = call.optional_tensor("offsets");
  if (offsets != nullptr) {
    return std::max<std::int64_t>(offsets->size(offsets->rank() - 1) - 1, 0);
  }
  const TensorMeta& lengths = call.tensor("lengths");
  return lengths.size(lengths.rank() - 1);
}

// Lengths of no segments at all are refused.
void some_segments(const OpCall&, IndexSpace& space) {
  for (Factor& factor : space.factors) factor.least = 1;
}

// How many results there are depends on all values: every rank needs them all.
BoundForm bind_counted(const OpCall& call) {
  const OpSchema& op = call.op();
  if (op.outputs.empty()) {
    call_not_stated("the size of the result depends on the data");
  }
  SpaceBuilder b;
  for (const TensorMeta& meta : op.inputs) {
    Operand whole = b.per_dim(meta.shape());
    for (const DimFactors& dim : whole.dims) {
      b.block(dim, "how many results there are depends on all values");
    }
    b.input(std::move(whole));
  }
  for (const std::int32_t slot : op.output_slots) {
    if (slot == OpSchema::kNotProduced) {
      b.not_produced();
      continue;
    }
    const TensorMeta& meta = op.outputs[index(slot)];
    b.output(SpaceBuilder::whole(meta.rank()), {.shape = meta.shape(),
                                                .strides = meta.strides(),
                                                .dtype = meta.dtype()});
  }
  return b.bound();
}

// A term per operand: letters of the dims of `rank`, that of `dim` in brackets.
std::string letters(int rank, int dim, char inside) {
  require(rank < 20, "a tensor has more dims than there are letters");
  std::string term;
  for (int d = 0; d < rank; ++d) {
    term += d == dim ? std::string{'[', inside, ']'}
                     : std::string(1, static_cast<char>('a' + d));
  }
  return term;
}

// diff: neighbours subtracted n times, prepend and append joined before.
std::string diff_notation(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  require(self.rank() > 0, "a scalar has no differences");
  const int dim = call.dim("dim", self.rank());
  return letters(self.rank(), dim, 'x') + ',' + letters(self.rank(), dim, 'y') +
         ',' + letters(self.rank(), dim, 'z') + "->" +
         letters(self.rank(), dim, 'w');
}

// What is put before or after it is joined to it in a new tensor.
Dims diff_strides(const OpCall& call, const Dims& shape, DType dtype) {
  return call.optional_tensor("prepend") != nullptr ||
                 call.optional_tensor("append") != nullptr
             ? make_meta(shape, dtype).strides()
             : dense_like(call.tensor("self"), shape, dtype).strides();
}

std::int64_t diff_size(const OpCall& call, char) {
  const TensorMeta& self = call.tensor("self");
  const int dim = call.dim("dim", self.rank());
  std::int64_t size = self.size(dim);
  for (const char* more : {"prepend", "append"}) {
    if (const TensorMeta* meta = call.optional_tensor(more)) {
      size = add_sizes(size, meta->size(dim));
    }
  }
  return std::max<std::int64_t>(size - call.integer("n"), 0);
}

// glu: the second half of a dim gates the first.
std::string glu_notation(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  require(self.rank() > 0, "a scalar has no halves");
  const int dim = call.dim("dim", self.rank());
  const std::string whole = letters(self.rank(), dim, 'x');
  const std::string half = letters(self.rank(), dim, 'y');
  return call.has("grad_output") ? half + ',' + whole + "->" + whole
                                 : whole + "->" + half;
}

std::int64_t half_size(const OpCall& call, char) {
  const TensorMeta& self = call.tensor("self");
  const std::int64_t size = self.size(call.dim("dim", self.rank()));
  require(size % 2 == 0, "the dim has no halves");
  return size / 2;
}

// As if its halves, views of it, were multiplied.
Dims glu_strides(const OpCall& call, const Dims& shape, DType dtype) {
  const TensorMeta half =
      make_meta(shape, call.tensor("self").strides(), dtype);
  return elementwise({&half, 1}, dtype).strides();
}

// renorm: of the slices of `dim`, each on its own.
std::string renorm_notation(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const int dim = call.dim("dim", self.rank());
  std::string term;
  for (int d = 0; d < self.rank(); ++d) {
    const char letter = static_cast<char>('a' + d);
    term += d == dim ? std::string(1, letter) : std::string{'[', letter, ']'};
  }
  return term + "->" + term;
}

// Elements of `self`, counted as if it had one dim, are replaced.
std::string put_notation(const OpCall& call) {
  const int rank = call.tensor("self").rank();
  require(rank < 20, "a tensor has more dims than there are letters");
  std::string term = "[";
  for (int d = 0; d < rank; ++d) term += static_cast<char>('a' + d);
  return term + "],*,*->" + term + "]";
}

// pdist: of each two rows.
std::int64_t pairs_of_rows(const OpCall& call, char) {
  require(is_floating(call.first().dtype()) && call.first().is_contiguous() &&
              call.op().float_arg("p").value_or(0) >= 0,
          "the rows are not floats in order, or the norm is negative");
  const std::int64_t rows = call.first().size(0);
  return multiply_sizes(rows, std::max<std::int64_t>(rows - 1, 0)) / 2;
}

// nonzero_static: the first `size` places, filled up.
std::string places_notation(const OpCall& call) {
  const int rank = call.tensor("self").rank();
  require(rank < 17, "a tensor has more dims than there are letters");
  std::string term;
  for (int d = 0; d < rank; ++d) {
    term += std::string{'[', static_cast<char>('a' + d), ']'};
  }
  return term + "->[s][r]";
}

std::int64_t places_size(const OpCall& call, char letter) {
  const std::int64_t size = call.integer("size");
  require(size >= 0, "a negative count");
  return letter == 's' ? size : call.tensor("self").rank();
}

// Every element `repeats` times in a row: the dim is one of two factors.
BoundForm bind_repeated(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const std::int64_t repeats = call.integer("repeats");
  require(repeats >= 0, "a negative count");
  SpaceBuilder b;
  Operand whole = b.per_dim(self.shape());
  b.input(whole);
  if (!call.op().int_arg("dim")) {
    for (const DimFactors& dim : whole.dims) b.block(dim, "it is flattened");
    b.output(SpaceBuilder::whole(1),
             {.shape = Dims{multiply_sizes(self.numel(), repeats)}});
    return b.bound();
  }
  const int dim = call.dim("dim", self.rank());
  require(self.rank() > 0, "a scalar has no dim to repeat");
  for (const FactorId id : b.blocked(repeats, "it is repeated")) {
    whole.dims[index(dim)].push_back(id);
  }
  if (repeats == 0) b.block(whole.dims[index(dim)], "nothing is left of it");
  if (call.op().int_arg("output_size")) {
    b.block(whole.dims[index(dim)], "`output_size` is that of the whole");
  }
  Dims shape = self.shape();
  shape[index(dim)] = multiply_sizes(shape[index(dim)], repeats);
  b.output(std::move(whole), {.shape = std::move(shape)});
  return b.bound();
}

}  // namespace

void define_lookup(Family f) {
  f.add("take_along_dim",
        mapped("take_along(dim)", take_along_notation, all_indices));
  f.add("searchsorted",
        mapped("searchsorted()", searchsorted_notation).typed(of_position));
  f.add("bucketize.Tensor", mapped("...,[s]->...").typed(of_position));
  f.add("bucketize.Scalar", mapped("[s]->").typed(of_position));
  f.add("isin.Tensor_Tensor", mapped("...,*->...").boolean());
  f.add("isin.Tensor_Scalar", mapped("...->...").boolean());
  f.add("isin.Scalar_Tensor", mapped("*->").boolean());
  f.add("put", mapped("put()", put_notation).like("self"));
  f.add("take", mapped("*,...->...").passes({"self"}));
  f.add("multinomial", mapped("...[n]->...[s]",
                              [](const OpCall& call, char) {
                                return call.integer("num_samples");
                              })
                           .typed(DType::kI64)
                           .random());
  f.add("histc", custom("histogram()", bind_histogram));
  f.add("histogram", custom("histogram()", bind_weighted_histogram));
  f.add({"_histogramdd_bin_edges", "_histogramdd_from_bin_cts",
         "_histogramdd_from_bin_tensors"},
        custom("histogram()", bind_histogram_of_points));
  f.add({"segment_reduce", "_segment_reduce_backward"},
        mapped("segments(axis)", segments_notation, segments_size)
            .refine("", some_segments));
  f.add({"cdist", "_cdist_forward", "_euclidean_dist"},
        mapped("...p[m],...r[m]->...pr"));
  f.add("_cdist_backward", mapped("...p[r],...p[m],...[r][m],...p[r]->...p[m]")
                               .linear_in("grad")
                               .nonempty());
  f.add("_pdist_forward", mapped("[n][m]->[s]", pairs_of_rows));
  f.add("_pdist_backward",
        mapped("[s],[n]m,[s]->[n]m").nonempty().linear_in("grad"));
  f.add("nonzero_static",
        mapped("nonzero_static()", places_notation, places_size)
            .typed(DType::kI64));
  f.add("diff",
        mapped("diff(dim)", diff_notation, diff_size).strided(diff_strides));
  f.add("glu",
        mapped("glu(dim)", glu_notation, half_size).strided(glu_strides));
  f.add("glu_backward", mapped("glu_backward(dim)", glu_notation, half_size)
                            .linear_in("grad_output"));
  f.add("renorm", mapped("renorm(dim)", renorm_notation));
  f.add("repeat_interleave.self_int",
        custom("n->(nr)", bind_repeated).passes({"self"}));
  f.add({"nonzero", "argwhere", "masked_select", "bincount", "_ctc_loss.Tensor",
         "_unique", "_unique2", "unique_dim", "unique_consecutive",
         "unique_dim_consecutive", "repeat_interleave.Tensor",
         "repeat_interleave.self_Tensor"},
        custom("counted()", bind_counted),
        "replicated: its size depends on data");
}

}  // namespace shardprop

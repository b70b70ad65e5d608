// Where values lie among others, and counts of them.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"
#include "ops/forms/indices.h"
#include "ops/forms/mapped.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

namespace shardprop {
namespace {

DType of_position(const OpCall& call, std::size_t) {
  return call.boolean_or("out_int32", false) ? DType::kI32 : DType::kI64;
}

// A place is how many of the sorted values come before: counts of parts add up.
// A sorter names places of the whole.
std::string searchsorted_notation(const OpCall& call) {
  const TensorMeta* sorter =
      call.has("sorter") ? call.optional_tensor("sorter") : nullptr;
  const std::string s = sorter == nullptr ? "s" : "[s]";
  if (call.overload() == "Scalar") return s + ',' + s + "->";
  return call.tensor("sorted_sequence").rank() == 1
             ? s + ",...," + s + "->..."
             : "..." + s + ",...v,..." + s + "->...v";
}

// The factors that the one result lacks.
void adds_up(IndexSpace& space, ReduceOp op) {
  space.seal();
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    if (space.outputs[0].holds(static_cast<int>(f))) continue;
    space.outputs_without[0][f] = Without::partial(op);
    space.factors[f].least = 1;
  }
}

OpDefinition counted_before(OpDefinition row) {
  return std::move(row)
      .typed(of_position)
      .refine("", [](const OpCall&, IndexSpace& space) {
        adds_up(space, ReduceOp::kSum);
      });
}

// A letter for each dim, from the `first` on.
std::string letters_from(int first, int rank) {
  if (first + rank > 26) call_not_stated("more dims than letters");
  std::string term;
  for (int d = 0; d < rank; ++d) term += static_cast<char>('a' + first + d);
  return term;
}

// An element is among the test elements if it is among those of any rank.
std::string isin_notation(const OpCall& call) {
  const TensorMeta* elements =
      call.has("elements") ? call.optional_tensor("elements") : nullptr;
  const int rank = elements == nullptr ? 0 : elements->rank();
  const TensorMeta* test = call.has("test_elements")
                               ? call.optional_tensor("test_elements")
                               : nullptr;
  const std::string own = letters_from(0, rank);
  std::string terms = own;
  if (test != nullptr) {
    if (elements != nullptr) terms += ',';
    terms += letters_from(rank, test->rank());
  }
  return terms + "->" + own;
}

// Kernels take parts of the test elements as one row.
constexpr std::string_view kIsin = R"(
test = reshape(test_elements, [-1])
return isin(default(elements, element), test, assume_unique=assume_unique, invert=invert))";

OpDefinition is_among() {
  return mapped("isin()", isin_notation)
      .boolean()
      .refine("",
              [](const OpCall& call, IndexSpace& space) {
                adds_up(space, call.boolean("invert") ? ReduceOp::kBand
                                                      : ReduceOp::kBor);
                for (std::size_t f = 0; f < space.factors.size(); ++f) {
                  if (space.outputs[0].holds(static_cast<int>(f))) continue;
                  space.factors[f].program = ProgramUse::kWhenSharded;
                }
              })
      .per_rank(kIsin);
}

// Self and indices broadcast in all dims but `dim`, which is x in self; without
// `dim` both are one row.
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
    from += along ? "[x]" : std::string(1, repeats ? '_' : letter);
    where += !along && indices.size(d) == 1 && self.size(d) != 1 ? '_' : letter;
    result += letter;
  }
  return from + ',' + where + "->" + result;
}

std::int64_t all_indices(const OpCall& call, char) {
  return call.tensor("indices").numel();
}

// The factors of that dim are sharded by the program; `left` is what becomes of
// the result then.
void served_by_rank(IndexSpace& space, std::size_t dim,
                    std::optional<Without> left) {
  if (dim >= space.inputs[0].dims.size()) return;
  const DimFactors over = space.inputs[0].dims[dim];
  look_up_by_program(space, over);
  for (const FactorId id : over) {
    if (left) space.outputs_without[0][index(id)] = *left;
  }
}

void serves_along(const OpCall& call, IndexSpace& space) {
  const TensorMeta& self = call.tensor("self");
  if (!call.op().int_arg("dim")) return;
  served_by_rank(space, index(call.dim("dim", self.rank())),
                 Without::partial(ReduceOp::kSum));
}

constexpr std::string_view kTakeAlong = R"(
local = indices - offset(self, dim)
outside = (local < 0) | (local >= local_size(self, dim))
values = take_along_dim(self, masked_fill(local, outside, 0), dim)
return masked_fill(values, outside, 0))";

// Self as if it had one dim: a rank serves the rows of the first that it holds.
std::string take_notation(const OpCall& call) {
  const int rank = call.tensor("self").rank();
  return (rank == 0 ? "" : "[x]" + std::string(index(rank - 1), '_')) +
         ",...->...";
}

void serves_rows(const OpCall&, IndexSpace& space) {
  served_by_rank(space, 0, Without::partial(ReduceOp::kSum));
}

constexpr std::string_view kTake = R"(
place = remainder(index, numel(self)) - offset(self, 0) * row_size(self)
outside = (place < 0) | (place >= local_size(self, 0) * row_size(self))
return masked_fill(take(self, masked_fill(place, outside, 0)), outside, 0))";

// segment_reduce: rows of dim `axis` in runs of given lengths, or between given
// offsets; the dims before it have runs of their own.
std::string segments_notation(const OpCall& call) {
  const TensorMeta& data = call.tensor("data");
  require(data.rank() > 0 && data.rank() < 20,
          "the data has no dim for segments, or too many dims");
  require(is_floating(data.dtype()), "the data is not of floats");
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

// Elements of `self`, counted as if it had one dim, are replaced, or added to:
// what ranks add adds up, where one of them has what was there.
std::string put_notation(const OpCall& call) {
  const TensorMeta& where = call.tensor("index");
  std::string term = "[";
  term += letters_from(0, call.tensor("self").rank());
  if (!call.boolean("accumulate") ||
      where.shape() != call.tensor("source").shape()) {
    return term + "],*,*->" + term + "]";
  }
  const std::string put =
      letters_from(call.tensor("self").rank(), where.rank());
  return term + "]," + put + ',' + put + "->" + term + "]";
}

void what_is_put_adds_up(const OpCall& call, IndexSpace& space) {
  if (!call.boolean("accumulate")) return;
  adds_up(space, ReduceOp::kSum);
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    space.inputs_without[0][f] = Without::partial(ReduceOp::kSum);
  }
}

void written_by_rows(const OpCall& call, IndexSpace& space) {
  if (call.tensor("index").numel() > 0) served_by_rank(space, 0, std::nullopt);
}

constexpr std::string_view kPut = R"(
n = local_size(self, 0) * row_size(self)
place = remainder(reshape(index, [-1]), numel(self)) - offset(self, 0) * row_size(self)
outside = (place < 0) | (place >= n)
place = masked_fill(place, outside, n)
flat = reshape(self, [-1])
wide = cat([flat, narrow(flat, 0, 0, 1)])
wide = put(wide, place, source, accumulate)
return reshape_as(narrow(wide, 0, 0, n), self))";

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
    Operand flat = SpaceBuilder::whole(1);
    for (const DimFactors& dim : whole.dims) {
      for (const FactorId id : dim) flat.dims[0].push_back(id);
    }
    for (const FactorId id : b.blocked(repeats, "it is repeated")) {
      flat.dims[0].push_back(id);
    }
    if (repeats == 0 || call.op().int_arg("output_size")) {
      b.block(flat.dims[0], "nothing is left of it, or how much is said");
    }
    b.output(std::move(flat),
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
        mapped("take_along(dim)", take_along_notation, all_indices)
            .refine("", selects({"self"}))
            .refine("", below("indices", size_along_dim))
            .refine("", serves_along)
            .per_rank(kTakeAlong));
  f.add("searchsorted",
        counted_before(mapped("searchsorted()", searchsorted_notation)));
  f.add("bucketize.Tensor", counted_before(mapped("...,s->...")));
  f.add("bucketize.Scalar", counted_before(mapped("s->")));
  f.add("isin", in_order(is_among()));
  f.add("put", mapped("put()", put_notation)
                   .like("self")
                   .refine("", below("index", size_of_self))
                   .refine("", what_is_put_adds_up)
                   .refine("", written_by_rows)
                   .per_rank(kPut));
  f.add("take", mapped("take()", take_notation)
                    .passes({"self"})
                    .refine("", below("index", size_of_self))
                    .refine("", serves_rows)
                    .per_rank(kTake));
  f.add("multinomial", mapped("...[n]->...[s]",
                              [](const OpCall& call, char) {
                                return call.integer("num_samples");
                              })
                           .typed(DType::kI64)
                           .random()
                           .refine("", draws(Distribution::kMultinomial)));
  f.add({"segment_reduce", "_segment_reduce_backward"},
        mapped("segments(axis)", segments_notation, segments_size)
            .refine("", some_segments));
  f.add("nonzero_static",
        mapped("nonzero_static()", places_notation, places_size)
            .typed(DType::kI64),
        "replicated: places are listed in the order of all elements");
  f.add("diff",
        mapped("diff(dim)", diff_notation, diff_size).strided(diff_strides));
  f.add("glu",
        mapped("glu(dim)", glu_notation, half_size).strided(glu_strides));
  f.add("glu_backward", mapped("glu_backward(dim)", glu_notation, half_size)
                            .linear_in("grad_output"));
  f.add("renorm", mapped("renorm(dim)", renorm_notation));
  f.add("repeat_interleave.self_int",
        custom("n->(nr)", bind_repeated).passes({"self"}));
  f.add({"nonzero", "argwhere", "masked_select", "_ctc_loss.Tensor", "_unique",
         "_unique2", "unique_dim", "unique_consecutive",
         "unique_dim_consecutive", "repeat_interleave.Tensor",
         "repeat_interleave.self_Tensor", "where.default", "nonzero_numpy"},
        custom("counted()", bind_counted),
        "replicated: its size depends on data");
}

}  // namespace shardprop

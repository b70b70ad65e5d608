// This file defines lookups of elements that indices or conditions select.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/forms/indices.h"
#include "ops/forms/mapped.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

namespace shardprop {
namespace {

// Self and indices broadcast in all dims except `dim`, which is full in self.
// Without `dim` both are flattened.
Notation take_along_notation(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& indices = call.tensor("indices");
  if (!call.op().int_arg("dim")) {
    return {
        {Term::replicated(), Term::replicated()}, {Term().full({'S'})}, {}, {}};
  }
  require(self.rank() == indices.rank() && self.rank() > 0,
          "self and indices have different ranks");
  const int dim = call.dim("dim", self.rank());
  Term from;
  Term where;
  for (int d = 0; d < self.rank(); ++d) {
    const FactorName name = FactorName::of_dim(d);
    const bool repeats = size_of(self, d) == 1 && size_of(indices, d) != 1;
    const bool is_repeated = size_of(indices, d) == 1 && size_of(self, d) != 1;
    if (d == dim || repeats) {
      from.any();
    } else {
      from.add(name);
    }
    if (d != dim && is_repeated) {
      where.any();
    } else {
      where.add(name);
    }
  }
  return {{from, where}, {term_of_dims(self.rank())}, {}, {}};
}

std::int64_t all_indices(const OpCall& call, const FactorName&) {
  return call.tensor("indices").numel();
}

// Lets the program shard the factors of that dim. The result then has the state
// `left`.
void served_by_rank(IndexSpace& space, std::size_t dim,
                    std::optional<Without> left) {
  if (dim >= nth(space.inputs, 0).dims.size()) return;
  const DimFactors over = nth(space.inputs, 0).dims[dim];
  look_up_by_program(space, over);
  for (const FactorId id : over) {
    if (left) nth(space.outputs_without, 0)[index(id)] = *left;
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

// Self is flattened; a rank looks up elements in its own rows of the first dim.
Notation take_notation(const OpCall& call) {
  const int rank = call.tensor("self").rank();
  Term self;
  for (int d = 0; d < rank; ++d) self.any();
  const Term places = Term().leading();
  return {{self, places}, {places}, {}, {}};
}

void serves_rows(const OpCall&, IndexSpace& space) {
  served_by_rank(space, 0, Without::partial(ReduceOp::kSum));
}

constexpr std::string_view kTake = R"(
place = remainder(index, numel(self)) - offset(self, 0) * row_size(self)
outside = (place < 0) | (place >= local_size(self, 0) * row_size(self))
return masked_fill(take(self, masked_fill(place, outside, 0)), outside, 0))";

// The number of results depends on all values, so every rank needs all of them.
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

// Elements of the flattened `self` are replaced or added to. If they are added,
// the results of the ranks are terms of a sum, and one rank has the old values.
Notation put_notation(const OpCall& call) {
  const TensorMeta& where = call.tensor("index");
  const int rank = call.tensor("self").rank();
  Term self;
  for (int d = 0; d < rank; ++d) {
    self.add(FactorName::of_dim(d), DimUse::kFull);
  }
  const bool adds = call.boolean("accumulate") &&
                    where.shape() == call.tensor("source").shape();
  const Term put = adds ? dims_from(rank, where.rank()) : Term::replicated();
  return {{self, put, put}, {self}, {}, {}};
}

void what_is_put_adds_up(const OpCall& call, IndexSpace& space) {
  if (!call.boolean("accumulate")) return;
  adds_up(space, ReduceOp::kSum);
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    nth(space.inputs_without, 0)[f] = Without::partial(ReduceOp::kSum);
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

// A position has an index for each dim.
std::int64_t indices_of_place(const OpCall& call, const FactorName&) {
  return call.tensor("self").rank();
}

}  // namespace

void words_of_lookup(RuleWords& words) {
  words.size("rank", indices_of_place);
  words.form(mapped("take_along(dim)", take_along_notation, all_indices));
  words.modifier("serves_along()", serves_along);
  words.form(mapped("put()", put_notation));
  words.modifier("what_is_put_adds_up()", what_is_put_adds_up);
  words.modifier("written_by_rows()", written_by_rows);
  words.form(mapped("take()", take_notation));
  words.modifier("serves_rows()", serves_rows);
  words.form(custom("counted()", bind_counted));
}

void define_lookup(Family f) {
  f.add("take_along_dim", form("take_along(dim)")
                              .selects({"self"})
                              .below("indices", IndexBound::kDim)
                              .refine("serves_along()")
                              .per_rank(kTakeAlong));
  f.add("put", form("put()")
                   .like({"self"})
                   .below("index", IndexBound::kElements)
                   .refine("what_is_put_adds_up()")
                   .refine("written_by_rows()")
                   .per_rank(kPut));
  f.add("take", form("take()")
                    .passes({"self"})
                    .below("index", IndexBound::kElements)
                    .refine("serves_rows()")
                    .per_rank(kTake));
  f.add("multinomial", mapped("...{n}->...{s:num_samples}")
                           .typed(DType::kI64)
                           .random()
                           .draws(Distribution::kMultinomial));
  f.add("nonzero_static", mapped("*->{s:size}{r:rank()}").typed(DType::kI64),
        "replicated: places are listed in the order of all elements");
  f.add({"nonzero", "argwhere", "masked_select", "_ctc_loss.Tensor", "_unique",
         "_unique2", "unique_dim", "unique_consecutive",
         "unique_dim_consecutive", "repeat_interleave.Tensor",
         "repeat_interleave.self_Tensor", "where.default", "nonzero_numpy"},
        form("counted()"), "replicated: its size depends on data");
}

}  // namespace shardprop

// This file defines operators that PyTorch composes from others, and that an
// export without decomposition keeps.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/forms/indices.h"
#include "ops/forms/mapped.h"
#include "ops/forms/space_builder.h"

#include <algorithm>
#include <string>

namespace shardprop {
namespace {

// --- Sequences of different lengths, stacked with padding ---

Notation pad_sequence_notation(const OpCall& call) {
  const auto sequences = call.tensors("sequences");
  require(!sequences.empty() && sequences[0].rank() > 0,
          "no sequences are given");
  for (const TensorMeta& sequence : sequences) {
    require(sequence.rank() == sequences[0].rank(),
            "the sequences are of several ranks");
  }
  Term each = term_with(sequences[0].rank(), 0, Term().any());
  each.is_each = true;
  const Term front = call.boolean("batch_first") ? Term().full({'Z', 'T'})
                                                 : Term().full({'T', 'Z'});
  return {{each}, {term_with(sequences[0].rank(), 0, front)}, {}, {}};
}

std::int64_t pad_sequence_size(const OpCall& call, const FactorName& letter) {
  const auto sequences = call.tensors("sequences");
  if (letter == 'Z') return static_cast<std::int64_t>(sequences.size());
  std::int64_t longest = 0;
  for (const TensorMeta& sequence : sequences) {
    longest = std::max(longest, size_of(sequence, 0));
  }
  return longest;
}

// --- A sum to a shape that broadcasts to that of the operand ---

Notation summed_notation(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const Dims shape = dims_of(call.integers("size"));
  require(shape.size() <= self.shape().size(),
          "the size has more dims than the tensor");
  const std::size_t added = self.shape().size() - shape.size();
  Term out;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::int64_t size = self.shape()[added + d];
    require(shape[d] == size || shape[d] == 1,
            "the size does not broadcast to that of the tensor");
    if (shape[d] == size) {
      out.add(FactorName::of_dim(static_cast<int>(added + d)));
    } else {
      out.any();
    }
  }
  return {{term_of_dims(self.rank())}, {out}, {}, {}};
}

// A call with an empty size sums even a tensor without dims.
bool is_summed(const OpCall& call) {
  const Dims shape = dims_of(call.integers("size"));
  return shape.empty() || shape != call.tensor("self").shape();
}

DType of_summed(const OpCall& call, std::size_t) {
  const DType own = call.first().dtype();
  return is_summed(call) && counts(own) ? DType::kI64 : own;
}

void summed_dims(const OpCall& call, IndexSpace& space) {
  space.is_free = !is_summed(call);
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    if (nth(space.outputs, 0).holds(static_cast<int>(f))) continue;
    nth(space.outputs_without, 0)[f] = Without::partial(ReduceOp::kSum);
    // A tensor that already has the size is not summed, and keeps its narrow
    // dtype.
    if (counts(call.first().dtype())) {
      space.factors[f].kind = FactorKind::kBlocked;
      space.factors[f].reason = "sums of integers are wider";
    }
  }
}

// --- Differences between neighbours, with one result per dim ---

BoundForm bind_gradient(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const std::vector<int> dims = call.dims("dim", self.rank());
  SpaceBuilder b;
  const Operand whole = b.per_dim(self.shape());
  for (const int dim : dims) {
    b.block(whole.dims[index(dim)], "differences run over it",
            FactorKind::kWindowed);
  }
  for (const TensorMeta& meta : call.op().inputs) {
    b.input(&meta == &self ? whole : SpaceBuilder::whole(meta.rank()));
  }
  for (std::size_t i = 0; i < dims.size(); ++i) b.output(whole);
  return b.bound();
}

// --- A slice whose start is a tensor ---

Notation narrowed_notation(const OpCall& call) {
  const int rank = call.tensor("self").rank();
  require(rank > 0, "a scalar has no part");
  const int dim = call.dim("dim", rank);
  return {{term_of_dims(rank, {dim}), Term::replicated()},
          {term_with(rank, dim, Term().full({'Z'}))},
          {{'Z', StatedSize::Kind::kArgument, 0, "length"}},
          {}};
}

Dims narrowed_strides(const OpCall& call, const Dims&, DType) {
  return call.tensor("self").strides();
}

// --- Covariance and correlation of rows, over observations ---

const TensorMeta* weights(const OpCall& call, const char* name) {
  return call.has(name) ? call.optional_tensor(name) : nullptr;
}

Notation covariance_notation(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  require(self.rank() <= 2, "the rows are not those of a matrix");
  require(self.dtype() != DType::kBool, "truth values have no covariance");
  const std::int64_t observations =
      self.rank() == 0 ? 1 : size_of(self, self.rank() - 1);
  std::vector<Term> terms(1);
  if (self.rank() == 2) terms[0].full({'v'});
  if (self.rank() > 0) terms[0].add('o');
  for (const char* name : {"fweights", "aweights"}) {
    const TensorMeta* one = weights(call, name);
    if (!call.has(name)) continue;
    Term& given = terms.emplace_back();
    if (one == nullptr) continue;
    require(one->rank() <= 1 && one->numel() == observations,
            "the weights are not one for each observation");
    require(is_integral(one->dtype()) == (name[0] == 'f'),
            "frequencies are integers, other weights are not");
    if (one->rank() == 0) call_not_stated("weights without a dim");
    given.add('o');
  }
  const bool many = self.rank() == 2 && size_of(self, 0) != 1;
  return {terms, {many ? Term().full({'v', 'v'}) : Term()}, {}, {}};
}

// Products of centred rows are terms of a sum. If the divisor may be 0, the
// terms may be infinite, and infinite terms do not add up. Complex means are
// not computed by such sums, and one-byte numbers have no sums.
void over_observations(const OpCall& call, IndexSpace& space) {
  const DType dtype = nth(call.op().outputs, 0).dtype();
  if (is_complex(dtype) || item_size(dtype) < 2) return;
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    Factor& observations = space.factors[f];
    observations.kind = FactorKind::kBlocked;
    observations.reason = "each row is taken from its mean over them";
    const bool adds_up = call.has("correction") &&
                         weights(call, "fweights") == nullptr &&
                         weights(call, "aweights") == nullptr &&
                         call.integer("correction") < observations.size;
    if (!adds_up) continue;
    nth(space.outputs_without, 0)[f] = Without::partial(ReduceOp::kSum);
  }
}

constexpr std::string_view kCovariance = R"(
x = cast(self, dtype(out))
flat = rank(self) < 2
x = unsqueeze(x, 0) if flat
n = size(x, 1)
weighted = is_none(fweights) * is_none(aweights) == 0
both = is_none(fweights) + is_none(aweights) == 0
w = cast(fweights, dtype(out)) if fweights
w = cast(aweights, dtype(out)) if aweights
a = w if aweights
w = cast(fweights, dtype(out)) * a if both
n = sum(w) if weighted
y = x
y = x * w if weighted
c = x - sum(y, [1], True) / n
d = c
d = c * w if weighted
taken = correction
taken = sum(w * a) * correction / n if aweights
free = larger(n - correction, 0) if not weighted
free = clamp(n - taken, 0) if weighted
lone = size(x, 0) == 1
r = mm(c, t(d)) if not lone
r = sum(c * d) if lone
safe = is_none(fweights) * is_none(aweights) * (correction < size(x, 1)) == 1
r = whole(r) if not safe
return r / free)";

constexpr std::string_view kCorrelation = R"(
x = cast(self, dtype(out))
flat = rank(self) < 2
x = unsqueeze(x, 0) if flat
c = x - sum(x, [1], True) / size(x, 1)
lone = size(x, 0) == 1
r = mm(c, t(c)) if not lone
s = sqrt(sum(c * c, [1])) if not lone
r = clamp(r / unsqueeze(s, 1) / s, -1, 1) if not lone
r = sum(c * c) if lone
r = r / r if lone
return r)";

// --- Combinations of elements of a vector ---

std::int64_t choices(const OpCall& call, const FactorName&) {
  const std::int64_t r = call.integer("r");
  constexpr std::int64_t kMost = 64;
  require(r >= 0 && r <= kMost, "`r` is negative, or out of range");
  std::int64_t from = size_of(call.first(), 0);
  if (call.boolean("with_replacement") && r > 0) from = add_sizes(from, r - 1);
  std::int64_t count = 1;
  for (std::int64_t i = 0; i < r && count > 0; ++i) {
    count =
        multiply_sizes(count, std::max<std::int64_t>(from - i, 0)) / (i + 1);
  }
  return count;
}

constexpr std::string_view kCombinations =
    "if r is 0: {n}->{r:r} | {n}->{z:choices()}{r:r}";

// Each rank keeps its own rows of the result.
void rows_of_choices(const OpCall& call, IndexSpace& space) {
  if (nth(call.op().outputs, 0).rank() < 2) return;
  make_in_parts(call, space, 0, "it makes all of them");
}

constexpr std::string_view kChoices = R"(
return narrow(itself(), 0, offset(out, 0), local_size(out, 0)))";

// --- Indices along a dim of another tensor ---

void count_in_parts(const OpCall& call, IndexSpace& space) {
  const int rank = call.first().rank();
  if (rank == 0) return;
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    nth(space.outputs_without, 0)[f] = Without::same();
  }
  for (const FactorId id : dim_of(space.outputs, 0, 0)) {
    space.factor(id).program = ProgramUse::kWhenSharded;
  }
}

}  // namespace

void words_of_composites(RuleWords& words) {
  words.strides("summed",
                [](const OpCall& call, const Dims& shape, DType dtype) {
                  return is_summed(call) ? make_meta(shape, dtype).strides()
                                         : call.first().strides();
                });
  words.check("mask_of_gradient()", [](const OpCall& call, const IndexSpace&) {
    require(call.tensor("grad").shape() == call.tensor("mask").shape(),
            "the mask does not have the shape of the gradient");
  });
  words.size("choices", choices);
  words.form(mapped("covariance()", covariance_notation));
  words.form(mapped("correlation()", covariance_notation));
  words.modifier("over_observations()", over_observations);
  words.modifier("rows_of_choices()", rows_of_choices);
  words.form(mapped("places(dim)", [](const OpCall& call) {
    const int rank = call.first().rank();
    const int dim = call.dim("dim", rank);
    const Term made = rank == 0 ? Term().any() : dims_from(dim, 1);
    return Notation{{term_of_dims(rank)}, {made}, {}, {}};
  }));
  words.modifier("count_in_parts()", count_in_parts);
  words.form(
      mapped("pad_sequence()", pad_sequence_notation, pad_sequence_size));
  words.form(mapped("sum_to_size()", summed_notation));
  words.modifier("summed_dims()", summed_dims);
  words.form(custom("gradient(dim)", bind_gradient));
  words.form(mapped("narrow_at(dim)", narrowed_notation));
  words.dtype("summed", of_summed);
  words.strides("narrowed", narrowed_strides);
}

void define_composites(Family f) {
  const auto of_observations = [](std::string_view name) {
    return form(name).floating().refine("over_observations()");
  };
  f.add("cov", of_observations("covariance()").decomposed(kCovariance));
  f.add("corrcoef", of_observations("correlation()").decomposed(kCorrelation));
  f.add("combinations", mapped(kCombinations)
                            .passes()
                            .refine("rows_of_choices()")
                            .per_rank(kChoices));
  f.add("_dim_arange", form("places(dim)")
                           .typed(DType::kI64)
                           .ignores_values()
                           .refine("count_in_parts()")
                           .per_rank("return places(like, dim)"));
  f.add("pad_sequence", form("pad_sequence()"));
  f.add("sum_to_size", form("sum_to_size()")
                           .typed("summed()")
                           .strided("summed")
                           .refine("summed_dims()")
                           .linear_in("self")
                           .local_shape("size"));
  f.add("gradient", form("gradient(dim)").floating().linear_in("self"));
  f.add("narrow.Tensor",
        form("narrow_at(dim)").strided("narrowed").passes({"self"}).free());
  f.add({"fake_quantize_per_tensor_affine_cachemask_backward",
         "fake_quantize_per_channel_affine_cachemask_backward"},
        pointwise().of("grad").linear_in("grad").checked("mask_of_gradient()"));
}

}  // namespace shardprop

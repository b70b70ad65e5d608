// This file defines gradients that PyTorch composes from other operators. An
// export keeps them if the program computes gradients in its forward
// (torch.func.grad: forces of an energy).

#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/forms/indices.h"
#include "ops/forms/mapped.h"
#include "ops/forms/space_builder.h"

#include <string>
#include <string_view>

namespace shardprop {
namespace {

constexpr std::string_view kWritten = "indices say where it is written";

// Sums the looked-up rows. The local program needs at least one row.
void add_up_rows(IndexSpace& space) {
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    if (space.factors[f].letter != 'I') continue;
    space.factors[f].least = 1;
    nth(space.outputs_without, 0)[f] = kTermsOfSum;
  }
}

// --- Gradients of selections along a dim ---

// Each rank computes its part of the dim that the indices refer to.
void written_in_parts(const OpCall& call, IndexSpace& space) {
  const int rank = nth(call.op().outputs, 0).rank();
  if (rank == 0) return;
  make_in_parts(call, space, call.dim("dim", rank), kWritten);
}

void rows_written_in_parts(const OpCall& call, IndexSpace& space) {
  add_up_rows(space);
  written_in_parts(call, space);
}

std::int64_t size_given(const OpCall& call, std::string_view argument,
                        int dim) {
  const auto sizes = call.integers(argument);
  return sizes.empty() ? 1 : sizes[index(dim)];
}

int rank_given(const OpCall& call, std::string_view argument) {
  return static_cast<int>(call.integers(argument).size());
}

// Checks that the dims other than `dim` match those of the tensor being
// differentiated. A gradient may lack `dim`.
void check_sizes_given(const OpCall& call, std::string_view argument, int dim) {
  const auto sizes = call.integers(argument);
  const TensorMeta& grad = call.tensor("grad");
  const auto rank = static_cast<int>(sizes.size());
  require(rank == 0 || grad.rank() == rank || grad.rank() == rank - 1,
          "the sizes are not those of a tensor that gives this gradient");
  for (int d = 0; d < rank; ++d) {
    if (d == dim) continue;
    const int at = grad.rank() == rank || d < dim ? d : d - 1;
    require(size_of(grad, at) == sizes[index(d)],
            "the sizes are not those of a tensor that gives this gradient");
  }
}

Notation one_of_dim(const OpCall& call) {
  const int rank = rank_given(call, "sizes");
  const int dim = call.dim("dim", rank);
  require(is_index(call.tensor("indices").dtype()),
          "the indices are not of integers");
  check_sizes_given(call, "sizes", dim);
  const Term taken =
      term_with(rank, dim, call.boolean("keepdim") ? Term().any() : Term());
  return {{taken, taken}, {term_with(rank, dim, Term().full({'Z'}))}, {}, {}};
}

std::int64_t size_of_dim(const OpCall& call, const FactorName&) {
  return size_given(call, "sizes", call.dim("dim", rank_given(call, "sizes")));
}

constexpr std::string_view kOneOfDim = R"(
g = grad
i = indices
g = unsqueeze(grad, dim) if not keepdim
i = unsqueeze(indices, dim) if not keepdim
hit = i == trailing(places(out, dim), rank(out) - 1 - wrap(out, dim))
return where(hit, g, zeros_like(g)))";

Notation rows_of_dim(const OpCall& call) {
  const int rank = rank_given(call, "self_sizes");
  const int dim = call.dim("dim", rank);
  require(is_index(call.tensor("index").dtype()),
          "the index is not of integers");
  check_sizes_given(call, "self_sizes", dim);
  const bool is_vector = call.tensor("index").rank() == 1;
  const Term rows = is_vector ? Term().add('I') : Term();
  return {{term_with(rank, dim, is_vector ? rows : Term().any()), rows},
          {term_with(rank, dim, Term().full({'Z'}))},
          {},
          {}};
}

std::int64_t rows_in_all(const OpCall& call, const FactorName&) {
  return size_given(call, "self_sizes",
                    call.dim("dim", rank_given(call, "self_sizes")));
}

constexpr std::string_view kRowsOfDim = R"(
d = wrap(out, dim)
local = index - offset(out, d)
outside = (local < 0) | (local >= local_size(out, d))
added = masked_fill(grad, trailing(outside, rank(out) - 1 - d), 0)
none = zeros_like(narrow(grad, d, 0, 1))
none = index_select(none, d, remainder(arange(local_size(out, d)), 1))
return index_add(none, d, masked_fill(local, outside, 0), added))";

// Dims other than `dim` share a factor if their sizes agree.
Notation gathered_notation(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& looked = call.tensor("index");
  require(looked.shape() == call.tensor("grad").shape(),
          "the gradient does not have the shape of the index");
  require(!call.boolean("sparse_grad"), "the gradient is sparse");
  require(is_index(looked.dtype()), "the index is not of integers");
  if (looked.rank() != self.rank()) {
    call_not_stated("an index of another rank than the tensor");
  }
  const int dim = call.dim("dim", self.rank());
  Term all;
  Term taken;
  for (int d = 0; d < self.rank(); ++d) {
    const FactorName name = FactorName::of_dim(d);
    const bool alike = d != dim && size_of(self, d) == size_of(looked, d);
    all.add(name, d == dim || alike ? DimUse::kSharded : DimUse::kFull);
    if (alike) {
      taken.add(name);
    } else if (d == dim) {
      taken.add('I');
    } else {
      taken.any();
    }
  }
  return {{taken, all, taken}, {all}, {}, {}};
}

constexpr std::string_view kGathered = R"(
local = index - offset(self, dim)
outside = (local < 0) | (local >= local_size(self, dim))
return scatter_add(zeros_like(self), dim, masked_fill(local, outside, 0), masked_fill(grad, outside, 0)))";

void gathered_by_program(const OpCall& call, IndexSpace& space) {
  add_up_rows(space);
  const int rank = call.tensor("self").rank();
  if (rank == 0) return;
  look_up_by_program(space,
                     dim_of(space.outputs, 0, index(call.dim("dim", rank))));
}

// --- Gradients of masked selections, in the order of the elements ---

constexpr std::string_view kSelected = R"(
m = bitwise_or(mask, zeros_like(input, dtype=dtype(mask)))
taken = all_gather_unordered(unsqueeze(sum(m), 0))
starts = all_gather_unordered(full([1], offset(out, 0)))
before = sum(masked_fill(taken, starts >= offset(out, 0), 0))
own = remainder(arange(numel(grad)) + before, numel(grad))
return masked_scatter(zeros_like(input), m, index_select(grad, 0, own)))";

void check_mask_of_input(const OpCall& call, const IndexSpace&) {
  const TensorMeta& input = call.tensor("input");
  const TensorMeta& mask = call.tensor("mask");
  require(mask.dtype() == DType::kBool, "the mask is not of truth values");
  require(broadcast(input.shape(), mask.shape()) == input.shape(),
          "the mask does not broadcast to the tensor");
}

void selected_in_order(const OpCall& call, IndexSpace& space) {
  for (Factor& factor : space.factors) {
    factor.kind = FactorKind::kBlocked;
    factor.reason = "the gradient is taken in order";
  }
  if (call.tensor("input").rank() == 0) return;
  cut_by_program(space, dim_of(space.outputs, 0, 0));
}

// --- Gradients of a diagonal ---

constexpr std::string_view kDiagonalGradientProgram = R"(
hit = unsqueeze(places(out, 0), 1) == places(out, 1)
return where(hit, grad, zeros_like(grad)))";

std::int64_t side_given(const OpCall& call, const FactorName& letter) {
  const auto sizes = call.integers("sizes");
  require(sizes.size() == 2, "the sizes are not those of a matrix");
  return sizes[letter == 'm' ? 0 : 1];
}

// --- Gradients of an exponential: a corner of matrices twice as large ---

Dims corner_of_twice(const OpCall&, const Dims& shape, DType dtype) {
  Dims twice = shape;
  for (std::size_t d = shape.size() - 2; d < shape.size(); ++d) {
    twice[d] = multiply_sizes(twice[d], 2);
  }
  return make_meta(twice, dtype).strides();
}

// --- Gradients of a convolution with time as the first dim ---

void convolved_over_time(const OpCall& call, IndexSpace& space) {
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    for (std::size_t o = 0; o < space.outputs.size(); ++o) {
      if (space.outputs[o].holds(static_cast<int>(f))) continue;
      // The bias does not depend on input channels.
      const bool same = o == 2 && space.factors[f].letter == 'i';
      space.outputs_without[o][f] = same ? Without::same() : kTermsOfSum;
    }
  }
  add_single_linearity(call, space, 0, ReduceOp::kSum, ReduceOp::kSum);
}

// The result is the incoming gradient itself if each product has one operand,
// or if the tensor has one element.
Dims strides_of_cumprod_gradient(const OpCall& call, const Dims& shape,
                                 DType dtype) {
  const TensorMeta& grad = call.tensor("grad");
  const bool is_given =
      grad.numel() <= 1 || size_of(grad, call.dim("dim", grad.rank())) == 1;
  return is_given ? grad.strides() : make_meta(shape, dtype).strides();
}

}  // namespace

void words_of_gradients(RuleWords& words) {
  words.check("mask_of_input()", check_mask_of_input);
  words.check("integer_indices()", [](const OpCall& call, const IndexSpace&) {
    require(is_index(call.tensor("indices").dtype()),
            "the indices are not of integers");
  });
  words.check(
      "gradient_broadcasts()", [](const OpCall& call, const IndexSpace&) {
        require(call.tensor("self").shape() == broadcast(call.op().inputs),
                "the gradient does not broadcast to the tensor");
      });
  words.size("given_sides", side_given);
  words.form(mapped("one_of(dim)", one_of_dim, size_of_dim));
  words.modifier("written_in_parts()", written_in_parts);
  words.form(mapped("rows_of(dim)", rows_of_dim, rows_in_all));
  words.modifier("rows_written_in_parts()", rows_written_in_parts);
  words.form(mapped("gathered(dim)", gathered_notation));
  words.modifier("gathered_by_program()", gathered_by_program);
  words.modifier("selected_in_order()", selected_in_order);
  words.modifier("diagonal_in_parts()",
                 [](const OpCall& call, IndexSpace& space) {
                   make_in_parts(call, space, 0, "it is a diagonal");
                   make_in_parts(call, space, 1, "it is a diagonal");
                 });
  words.modifier("convolved_over_time()", convolved_over_time);
  words.strides("cumprod_gradient", strides_of_cumprod_gradient);
  words.strides("corner_of_twice", corner_of_twice);
}

void define_gradients(Family f) {
  f.add("value_selecting_reduction_backward", form("one_of(dim)")
                                                  .refine("written_in_parts()")
                                                  .linear_in("grad")
                                                  .local_shape("sizes")
                                                  .per_rank(kOneOfDim));
  f.add("index_select_backward", form("rows_of(dim)")
                                     .refine("rows_written_in_parts()")
                                     .linear_in("grad")
                                     .local_shape("self_sizes")
                                     .per_rank(kRowsOfDim));
  f.add("gather_backward", form("gathered(dim)")
                               .refine("gathered_by_program()")
                               .linear_in("grad")
                               .per_rank(kGathered));
  f.add("masked_select_backward", mapped("_,...,...->...")
                                      .of("input")
                                      .like({"input"})
                                      .checked("mask_of_input()")
                                      .refine("selected_in_order()")
                                      .linear_in("grad")
                                      .per_rank(kSelected));
  f.add("trace_backward", mapped("->{m:given_sides()}{n:given_sides()}")
                              .refine("diagonal_in_parts()")
                              .linear_in("grad")
                              .local_shape("sizes")
                              .per_rank(kDiagonalGradientProgram));
  f.add("cumprod_backward", along("dim", 1, FactorKind::kScanned)
                                .strided("cumprod_gradient")
                                .linear_in("grad"));
  f.add("cummaxmin_backward", along("dim", 1, FactorKind::kScanned)
                                  .of("input")
                                  .linear_in("grad")
                                  .checked("integer_indices()"));
  f.add("matrix_exp_backward", mapped("...{nn},...{nn}->...{nn}")
                                   .strided("corner_of_twice")
                                   .linear_in("grad")
                                   .typed("only_floating(first)"));
  f.add("infinitely_differentiable_gelu_backward",
        pointwise()
            .promoted()
            .elementwise({"self", "grad"})
            .linear_in("grad")
            .checked("gradient_broadcasts()"));
  f.add("conv_tbc_backward",
        in_order(mapped("{s}bo,{t}bi,{k}io,o->{t}bi,{k}io,o")
                     .nonempty()
                     .multiplies(ProductKind::kConvolution)
                     .refine("convolved_over_time()")));
}

}  // namespace shardprop

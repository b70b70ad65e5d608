// Reductions over dims. A reduction without a reduce op of its own needs the
// full dim.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"
#include "ops/definitions/words.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace shardprop {
namespace {

constexpr std::string_view kLengthOfVectors =
    "real(no_integers(given(dtype,no_integers(first))))";

DType of_kth_value(const OpCall& call, std::size_t result) {
  const TensorMeta& self = call.first();
  const int dim = call.dim("dim", self.rank());
  const std::int64_t k = call.integer("k");
  require(k >= 1 && k <= (self.rank() == 0 ? 1 : size_of(self, dim)),
          "`k` is out of range");
  return value_and_index(call, result);
}

// For reductions without an identity (max, median, argmax) the reduced dims
// must have elements, in every shard too. Kept dims may be empty.
OpDefinition of_something(OpDefinition row) {
  return std::move(row).nonempty_reduced();
}

// A mean over unequal shards is a sum with the global divisor.
constexpr std::string_view kMean =
    "return sum(self, dim, keepdim, dtype=dtype) / (numel(self) / numel(out))";
constexpr std::string_view kMeanOfAll =
    "return sum(self, dtype=dtype) / (numel(self) / numel(out))";

void program_when_uneven(const OpCall&, IndexSpace& space) {
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    if (nth(space.outputs_without, 0)[f].is_partial()) {
      space.factors[f].program = ProgramUse::kWhenUneven;
    }
  }
}

// --- Statistics: the exchanged tensors are as small as the result ---

constexpr std::string_view kLogSumExp = R"(
x = upcast(cast(self, dtype(out)))
dims = reduced_dims(self, dim)
m = amax(x, dims, True)
m = masked_fill(m, isinf(m), 0)
r = log(sum(exp(x - m), dims, True)) + m
return cast(unkept(r, dims, keepdim), dtype(out)))";

// The variance is computed from the sum of squares around the mean.
constexpr std::string_view kMoments = R"(
x = upcast(self)
dims = reduced_dims(self, default(dim, None))
keep = default(keepdim, False)
mean = sum(x, dims, True) / count(self, dims)
c = x - mean
free = larger(count(self, dims) - default(correction, default(unbiased, 1)), 0)
var = unkept(sum(c * c, dims, True), dims, keep) / free
)";
constexpr std::string_view kVar = "return cast(var, dtype(out))";
constexpr std::string_view kStd = "return cast(sqrt(var), dtype(out))";
constexpr std::string_view kMeanToo =
    ", cast(unkept(mean, dims, keep), dtype(out, 1))";

// The length of vectors for order 2: squares are terms of a sum.
constexpr std::string_view kSquares = R"(
x = upcast(cast(self, dtype(out)))
dims = reduced_dims(self, default(dim, None))
r = sqrt(sum(x * x, dims, True))
return cast(unkept(r, dims, default(keepdim, False)), dtype(out)))";

// The length of vectors for any order: powers of absolute values are terms of a
// sum. For an infinite order it is an extremum.
constexpr std::string_view kLength = R"(
x = upcast(cast(self, dtype(out)))
dims = reduced_dims(self, default(dim, None))
power = default(ord, default(p, 2))
zero = power == 0
one = power == 1
two = power == 2
most = power == inf
least = power == 0 - inf
other = zero + one + two + most + least == 0
x = abs(x) if not two
r = sum(cast(ne(x, 0), dtype(x)), dims, True) if zero
r = sum(x, dims, True) if one
r = sqrt(sum(x * x, dims, True)) if two
r = amax(x, dims, True) if most
r = amin(x, dims, True) if least
r = pow(sum(pow(x, power), dims, True), 1 / power) if other
return cast(unkept(r, dims, default(keepdim, False)), dtype(out)))";

void real_lengths_only(const OpCall& call, IndexSpace& space) {
  if (!is_complex(call.first().dtype())) return;
  for (Factor& factor : space.factors) factor.program = ProgramUse::kNever;
}

// A norm has a program only if it is the root of a sum of squared elements.
void lengths_only(const OpCall& call, IndexSpace& space) {
  const Argument* order = call.has("ord") ? &call.op().arg("ord") : nullptr;
  const bool none = order == nullptr || std::holds_alternative<NoneArg>(*order);
  const auto* word = none ? nullptr : std::get_if<std::string>(order);
  const bool of_vectors = !none && word == nullptr &&
                          call.dims("dim", call.first().rank()).size() == 1 &&
                          call.op().float_arg("ord").value_or(0) == 2;
  const bool is_length =
      none || of_vectors || (word != nullptr && *word == "fro");
  if (is_length && !is_complex(call.first().dtype())) return;
  for (Factor& factor : space.factors) factor.program = ProgramUse::kNever;
}

// The mean without NaN is a quotient of two sums, of values and of counts.
constexpr std::string_view kNanMean = R"(
dims = reduced_dims(self, dim)
total = nansum(self, dims, True, dtype=dtype)
return unkept(total / sum(eq(self, self), dims, True), dims, keepdim))";

OpDefinition length() {
  return reduction(std::nullopt)
      .typed(kLengthOfVectors)
      .decomposed(kLength)
      .refine("real_lengths_only()");
}

// Powers of absolute values are terms of a sum, except for an infinite order.
void finite_powers_only(const OpCall& call, IndexSpace& space) {
  space.linearities.clear();
  if (std::isfinite(call.op().float_arg("ord").value_or(2))) return;
  for (Factor& factor : space.factors) {
    factor.kind = FactorKind::kBlocked;
    factor.reason = "an infinite power does not add up";
  }
}

// The program serves only real tensors. It also requires more elements than the
// correction subtracts.
void real_only(const OpCall& call, IndexSpace& space) {
  double count = 1;
  for (const Factor& factor : space.factors) {
    if (factor.kind == FactorKind::kBlocked) {
      count *= static_cast<double>(factor.size);
    }
  }
  const double correction = call.has("correction")
                                ? call.op().float_arg("correction").value_or(1)
                                : 1;
  if (!is_complex(call.first().dtype()) && correction < count) return;
  for (Factor& factor : space.factors) factor.program = ProgramUse::kNever;
}

OpDefinition moments(std::string_view results, bool with_mean) {
  return reduction(std::nullopt, with_mean ? 2 : 1)
      .typed("real(no_integers(first)),no_integers(first)")
      .decomposed(std::string(kMoments) + std::string(results) +
                  std::string(with_mean ? kMeanToo : ""))
      .refine("real_only()");
}

// Returns the extremum and the first position where it occurs; if there is a
// NaN, its position.
constexpr std::string_view kMax = "m = all_reduce_max(amax(self, dims, True))";
constexpr std::string_view kMin = "m = all_reduce_min(amin(self, dims, True))";
// Without a dim, positions refer to the flattened tensor.
constexpr std::string_view kPlace = R"(
hit = eq(self, m) | ne(self, self)
at = where(hit, places_along(self, dims), count_along(self, dims))
i = all_reduce_min(amin(at, dims, True))
)";

std::string place_program(std::string_view extremum, std::string_view results) {
  return "dims = reduced_dims(self, dim)\n" + std::string(extremum) +
         std::string(kPlace) + std::string(results);
}

OpDefinition with_place(std::string_view extremum) {
  return of_something(reduction(std::nullopt, 2))
      .typed("first,i64")
      .per_rank(place_program(extremum,
                              "return unkept(m, dims, keepdim), "
                              "unkept(i, dims, keepdim)"),
                FactorKind::kBlocked);
}

OpDefinition place_of(std::string_view extremum) {
  return of_something(reduction(std::nullopt))
      .typed(DType::kI64)
      .per_rank(place_program(extremum, "return unkept(i, dims, keepdim)"),
                FactorKind::kBlocked);
}

// The first result is reduced by min, the second by max.
void min_and_max(const OpCall&, IndexSpace& space) {
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    Factor& factor = space.factors[f];
    if (factor.kind != FactorKind::kBlocked) continue;
    factor.kind = FactorKind::kParallel;
    nth(space.outputs_without, 0)[f] = Without::partial(ReduceOp::kMin);
    nth(space.outputs_without, 1)[f] = Without::partial(ReduceOp::kMax);
  }
}

OpDefinition mean(std::string_view program) {
  return reduction(ReduceOp::kAvg)
      .typed("no_integers(given(dtype,first))")
      .refine("program_when_uneven()")
      .decomposed(program);
}

}  // namespace

void words_of_reduction(RuleWords& words) {
  words.check("mode_is_0()", [](const OpCall& call, const IndexSpace&) {
    require(call.integer("mode") == 0, "`mode` is not 0");
  });
  words.modifier("real_lengths_only()", real_lengths_only);
  words.modifier("real_only()", real_only);
  words.modifier("program_when_uneven()", program_when_uneven);
  words.modifier("min_and_max()", min_and_max);
  words.modifier("finite_powers_only()", finite_powers_only);
  words.modifier("lengths_only()", lengths_only);
  // A sum of singular values is no length.
  words.modifier("lengths_only(none)", [](const OpCall&, IndexSpace& space) {
    for (Factor& factor : space.factors) factor.program = ProgramUse::kNever;
  });
  words.dtype("kth_value", of_kth_value);
}

void define_reduction(Family f) {
  f.add("sum", reduction(ReduceOp::kSum).typed("given(dtype,sum(first))"));
  f.add("prod", reduction(ReduceOp::kProduct).typed("given(dtype,sum(first))"));
  // A sum of partials may be NaN even if no sum of their elements is.
  f.add("nansum",
        reduction(ReduceOp::kSum).typed("given(dtype,sum(first))").nonlinear());
  f.add("mean", mean(kMean));
  f.add("mean.default", mean(kMeanOfAll));
  f.add("amax", of_something(reduction(ReduceOp::kMax)).selects());
  f.add("amin", of_something(reduction(ReduceOp::kMin)).selects());
  f.add({"max.default", "max"},
        of_something(reduction(ReduceOp::kMax)).selects());
  f.add({"min.default", "min"},
        of_something(reduction(ReduceOp::kMin)).selects());
  f.add("max.dim", with_place(kMax));
  f.add("min.dim", with_place(kMin));
  f.add("kthvalue",
        of_something(reduction(std::nullopt, 2)).typed("kth_value()"));
  f.add({"median.dim", "nanmedian.dim", "mode"},
        of_something(reduction(std::nullopt, 2)).typed("first,i64"));
  f.add({"median", "nanmedian"}, reduction(std::nullopt).nonempty(),
        "replicated: the middle of all elements is not made of those of parts");
  f.add("any", reduction(ReduceOp::kBor).typed("truth(first)"));
  f.add("all", reduction(ReduceOp::kBand).typed("truth(first)"));
  f.add("_is_any_true", reduction(ReduceOp::kBor).typed("only_bool(first)"));
  f.add("_is_all_true", reduction(ReduceOp::kBand).typed("only_bool(first)"));
  f.add("argmax", place_of(kMax));
  f.add("argmin", place_of(kMin));
  f.add("var", moments(kVar, false));
  f.add("std", moments(kStd, false));
  f.add("var_mean", moments(kVar, true));
  f.add("std_mean", moments(kStd, true));
  f.add("prims.var", reduction(std::nullopt)
                         .typed("real(no_integers(first)),no_integers(first)"));
  f.add("aminmax",
        of_something(reduction(std::nullopt, 2)).refine("min_and_max()"));
  f.add("logsumexp", reduction(std::nullopt)
                         .typed("given(dtype,floating(first))")
                         .decomposed(kLogSumExp));
  f.add({"linalg_vector_norm", "norm"}, length());
  f.add("linalg__powsum", reduction(ReduceOp::kSum)
                              .typed("real(no_integers(given(dtype,first)))")
                              .refine("finite_powers_only()"));
  f.add({"linalg_norm", "linalg_matrix_norm", "frobenius_norm"},
        reduction(std::nullopt)
            .typed(kLengthOfVectors)
            .decomposed(kSquares)
            .refine("lengths_only()"));
  f.add("nuclear_norm.dim", reduction(std::nullopt)
                                .typed(kLengthOfVectors)
                                .decomposed(kSquares)
                                .refine("lengths_only(none)"));
  f.add("nanmean", reduction(std::nullopt)
                       .typed("no_integers(given(dtype,first))")
                       .decomposed(kNanMean));
  // The hash reads the bits of all elements, which partial terms do not have.
  f.add("hash_tensor", of_something(reduction(ReduceOp::kBxor))
                           .typed(DType::kU64)
                           .checked("mode_is_0()")
                           .nonlinear());
  // The terms of a partial do not show whether their sum is zero.
  f.add("count_nonzero",
        reduction(ReduceOp::kSum).typed(DType::kI64).nonlinear());
}

}  // namespace shardprop

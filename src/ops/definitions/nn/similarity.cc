// This file defines distances between rows, and losses of distances.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/forms/losses.h"
#include "ops/forms/mapped.h"
#include "ops/rules/fixed_notation.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

namespace shardprop {
namespace {

int widest_rank(const std::vector<const TensorMeta*>& operands) {
  int rank = 0;
  for (const TensorMeta* operand : operands) {
    rank = std::max(rank, operand->rank());
  }
  return rank;
}

// Returns the dims that the rows of two operands share, except `dim`.
Term without_dim(int rank, int dim, bool keepdim) {
  return term_with(rank, dim, keepdim ? Term().any() : Term());
}

Notation between_rows(const OpCall& call) {
  const std::vector<const TensorMeta*> operands = {&call.tensor("x1"),
                                                   &call.tensor("x2")};
  const int rank = widest_rank(operands);
  require(rank > 0, "a scalar does not have rows");
  const int dim = call.has("dim") ? call.dim("dim", rank) : rank - 1;
  return {broadcast_terms(operands, {dim}),
          {without_dim(rank, dim, call.boolean_or("keepdim", false))},
          {},
          {}};
}

Notation quantile_notation(const OpCall& call) {
  const TensorMeta& self = call.first();
  const int rank = self.rank();
  const bool of_all = !call.op().int_arg("dim") || rank == 0;
  std::vector<int> every(index(rank));
  for (int d = 0; d < rank; ++d) every[index(d)] = d;
  const bool keepdim = call.boolean_or("keepdim", false);
  const int dim = of_all ? 0 : call.dim("dim", rank);
  const Term in = term_of_dims(rank, of_all ? every : std::vector<int>{dim});
  Term out;
  if (!of_all) {
    out = without_dim(rank, dim, keepdim);
  } else if (keepdim) {
    for (int d = 0; d < rank; ++d) out.any();
  }
  const TensorMeta* q = call.has("q") ? call.optional_tensor("q") : nullptr;
  if (q == nullptr || q->rank() == 0) return {{in, Term()}, {out}, {}, {}};
  const Term quantiles = Term().full({'Q'});
  Term each = quantiles;
  each.dims.insert(each.dims.end(), out.dims.begin(), out.dims.end());
  return {{in, quantiles}, {each}, {}, {}};
}

// During the computation the dim of quantiles is the last one.
Dims quantile_strides(const OpCall& call, const Dims& shape, DType dtype) {
  const TensorMeta* q = call.has("q") ? call.optional_tensor("q") : nullptr;
  if (q == nullptr || q->rank() == 0 || shape.size() < 2) {
    return make_meta(shape, dtype).strides();
  }
  Dims moved(shape.begin() + 1, shape.end());
  moved.push_back(shape[0]);
  Dims strides = make_meta(moved, dtype).strides();
  std::rotate(strides.begin(), strides.end() - 1, strides.end());
  return strides;
}

// --- Distances ---

// A distance over parts of the rows is a sum of powers, whose root is computed
// once, or an extremum.
void distances_of_parts(const OpCall& call, IndexSpace& space) {
  const double p = call.has("p") ? call.op().float_arg("p").value_or(2) : 2;
  space.seal();
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    if (nth(space.outputs, 0).holds(static_cast<int>(f))) continue;
    Factor& part = space.factors[f];
    part.least = 1;
    if (std::isinf(p)) {
      nth(space.outputs_without, 0)[f] =
          Without::partial(p > 0 ? ReduceOp::kMax : ReduceOp::kMin);
    } else if (p == 0 || p == 1) {
      nth(space.outputs_without, 0)[f] = Without::partial(ReduceOp::kSum);
    } else {
      nth(space.outputs_without, 0)[f] = Without::same();
      part.program = ProgramUse::kWhenSharded;
    }
  }
}

std::string root_of_sum(std::string_view distances) {
  return "y = " + std::string(distances) +
         "\nreturn pow(all_reduce_sum(pow(y, p)), 1.0 / p)";
}
constexpr std::string_view kEuclidean = R"(
y = _euclidean_dist(x1, x2)
return sqrt(all_reduce_sum(y * y)))";

// Returns the number of pairs of rows.
std::int64_t pairs_of_rows(const OpCall& call, const FactorName&) {
  require(is_floating(call.first().dtype()) &&
              call.op().float_arg("p").value_or(0) >= 0,
          "the rows are not floats, or the norm is negative");
  const std::int64_t rows = size_of(call.first(), 0);
  return multiply_sizes(rows, std::max<std::int64_t>(rows - 1, 0)) / 2;
}

// --- Trapezoids between neighbours along a dim ---

Notation trapezoid_notation(const OpCall& call, bool cumulative) {
  const TensorMeta& y = call.tensor("y");
  require(y.rank() > 0, "a scalar has no neighbours");
  const int dim = call.dim("dim", y.rank());
  const Term in = term_of_dims(y.rank(), {dim});
  const Term out =
      term_with(y.rank(), dim, cumulative ? Term().full({'Z'}) : Term());
  if (!call.has("x")) return {{in}, {out}, {}, {}};
  const TensorMeta& x = call.tensor("x");
  // A vector has the dim itself.
  const bool is_vector = x.rank() == 1;
  require(is_vector || x.shape() == y.shape(),
          "places that broadcast are not stated");
  const Term places = is_vector ? Term().full({FactorName::of_dim(dim)}) : in;
  return {{in, places}, {out}, {}, {}};
}

std::int64_t gaps(const OpCall& call, const FactorName&) {
  const TensorMeta& y = call.tensor("y");
  return std::max<std::int64_t>(size_of(y, call.dim("dim", y.rank())) - 1, 0);
}

// --- Losses: one number for each sample, then reduced ---

// The result has no dim of samples; their losses are summed or averaged.
void reduced_samples(const OpCall& call, IndexSpace& space) {
  const LossReduction reduction = reduction_of(call);
  if (reduction == LossReduction::kNone) return;
  const bool is_mean = reduction == LossReduction::kMean;
  space.seal();
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    // The mean of unequal shards' means is not the mean.
    space.factors[f].even = is_mean;
    nth(space.outputs_without, 0)[f] =
        Without::partial(is_mean ? ReduceOp::kAvg : ReduceOp::kSum);
  }
}

// Returns the result: one number for each sample, or one for all.
Term reduced(const OpCall& call, const Term& samples) {
  return reduction_of(call) == LossReduction::kNone ? samples : Term();
}

Notation triplet_notation(const OpCall& call) {
  const std::vector<const TensorMeta*> operands = {&call.tensor("anchor"),
                                                   &call.tensor("positive"),
                                                   &call.tensor("negative")};
  const int rank = operands[0]->rank();
  require(
      rank > 0 && operands[1]->rank() == rank && operands[2]->rank() == rank,
      "anchor, positive and negative have different ranks");
  return {broadcast_terms(operands, {rank - 1}),
          {reduced(call, without_dim(rank, rank - 1, false))},
          {},
          {}};
}

Notation cosine_loss_notation(const OpCall& call) {
  const int rank = call.tensor("target").rank() + 1;
  const std::vector<const TensorMeta*> rows = {&call.tensor("input1"),
                                               &call.tensor("input2")};
  require(rank <= 2 && rows[0]->rank() == rank && rows[1]->rank() == rank,
          "the targets are not one for each pair of rows");
  const Term samples = dims_from(0, rank - 1);
  std::vector<Term> terms = broadcast_terms(rows, {rank - 1});
  terms.push_back(samples);
  return {terms, {reduced(call, samples)}, {}, {}};
}

// Lengths in a list are the same argument on all ranks, so the batch is not
// sharded.
Notation ctc_notation(const OpCall& call) {
  static const Notation kBatched = fixed_notation("{t}n{c},n{s},n,n->");
  static const Notation kLone = fixed_notation("{tc},*,*,*->");
  static const Notation kLists = fixed_notation("{tnc},*,*,*->");
  const bool batched = call.tensor("log_probs").rank() == 3 &&
                       call.tensor("targets").rank() == 2 &&
                       call.overload() == "Tensor" &&
                       call.tensor("input_lengths").rank() == 1 &&
                       call.tensor("target_lengths").rank() == 1;
  const bool lone = call.tensor("log_probs").rank() == 2;
  Notation notation = batched ? kBatched : lone ? kLone : kLists;
  Term samples;
  if (batched) samples.add('n');
  if (!batched && !lone) samples.full({'n'});
  notation.outputs[0] = reduced(call, samples);
  return notation;
}

// Returns the number of states in the paths through a target, for the longest
// target.
std::int64_t paths(const OpCall& call, const FactorName&) {
  std::int64_t longest = 0;
  for (const std::int64_t length : call.integers("target_lengths")) {
    longest = std::max(longest, length);
  }
  return add_sizes(multiply_sizes(2, longest), 1);
}

Notation ctc_gradient_notation(const OpCall& call) {
  static const Notation kBatched =
      fixed_notation("n,{t}n{c},n{s},n,n,n,n{ta}->{t}n{c}");
  static const Notation kTensors =
      fixed_notation("{n},{tnc},*,{n},{n},{n},{nta}->{tnc}");
  static const Notation kLists = fixed_notation("{n},{tnc},*,{n},{nta}->{tnc}");
  const bool by_tensors = call.overload() == "Tensor";
  const bool batched = call.tensor("targets").rank() == 2 && by_tensors;
  return batched ? kBatched : by_tensors ? kTensors : kLists;
}

void define_distances(Family& f) {
  const auto distances = [](std::string_view notation,
                            std::string_view program) {
    return mapped(notation).refine("distances_of_parts()").per_rank(program);
  };
  f.add({"cdist", "_cdist_forward"},
        distances("...pm,...rm->...pr",
                  root_of_sum("_cdist_forward(x1, x2, p, compute_mode)")));
  f.add("dist", form("dist()")
                    .promoted()
                    .refine("distances_of_parts()")
                    .per_rank(root_of_sum("dist(self, other, p)")));
  f.add("_euclidean_dist", distances("...pm,...rm->...pr", kEuclidean));
  f.add("_cdist_backward",
        in_order(mapped("...p{r},...pm,...{r}m,...p{r}->...pm")
                     .linear_in("grad")
                     .nonempty()));
  f.add("_pdist_forward",
        in_order(distances("{n}m->{s:pairs()}",
                           root_of_sum("_pdist_forward(self, p)")))
            .checked("rows_in_order()"));
  f.add("pdist", distances("{n}m->{s:pairs()}", root_of_sum("pdist(self, p)")));
  f.add("_pdist_backward",
        in_order(mapped("{s},{n}m,{s}->{n}m").nonempty().linear_in("grad")));
}

}  // namespace

void words_of_similarity(RuleWords& words) {
  words.size("pairs", pairs_of_rows);
  words.check("rows_in_order()", [](const OpCall& call, const IndexSpace&) {
    require(call.first().is_contiguous(), "the rows are not in order");
  });
  words.size("paths", paths);
  words.modifier("distances_of_parts()", distances_of_parts);
  words.form(mapped("dist()", [](const OpCall& call) {
    return Notation{
        broadcast_terms({&call.tensor("self"), &call.tensor("other")}, {}),
        {Term()},
        {},
        {}};
  }));
  words.form(mapped("cosine_similarity(dim)", between_rows));
  words.form(mapped("pairwise_distance()", between_rows));
  words.form(mapped("triplet_loss()", triplet_notation));
  words.modifier("reduced_samples()", reduced_samples);
  words.form(mapped("cosine_loss()", cosine_loss_notation));
  words.form(mapped("ctc_loss()", ctc_notation));
  words.form(mapped("ctc_gradient()", ctc_gradient_notation));
  words.form(mapped("quantile(dim)", quantile_notation));
  words.form(mapped("trapezoid(dim)", [](const OpCall& call) {
    return trapezoid_notation(call, false);
  }));
  words.form(mapped(
      "trapezoids(dim)",
      [](const OpCall& call) { return trapezoid_notation(call, true); }, gaps));
  words.strides("quantile", quantile_strides);
}

void define_similarity(Family f) {
  define_distances(f);
  f.add("cosine_similarity", form("cosine_similarity(dim)").promoted());
  f.add("pairwise_distance", form("pairwise_distance()").promoted());
  f.add("triplet_margin_loss",
        form("triplet_loss()").promoted().refine("reduced_samples()"));
  f.add("cosine_embedding_loss",
        form("cosine_loss()").promoted().refine("reduced_samples()"));
  f.add("ctc_loss", form("ctc_loss()").nonempty().refine("reduced_samples()"));
  constexpr std::string_view kLengths =
      "replicated: lengths of a batch come as lists of numbers";
  f.add("ctc_loss.IntList", form("ctc_loss()").nonempty(), kLengths);
  f.add("_ctc_loss.default", mapped("{tnc},*->{n},{n}{t}{p:paths()}"),
        kLengths);
  f.add("_ctc_loss_backward.default",
        form("ctc_gradient()").nonempty().linear_in("grad"), kLengths);
  f.add("_ctc_loss_backward",
        form("ctc_gradient()").nonempty().linear_in("grad"));
  f.add({"quantile", "nanquantile"},
        form("quantile(dim)").strided("quantile").nonempty());
  f.add({"trapezoid", "trapz"}, form("trapezoid(dim)").promoted());
  f.add("cumulative_trapezoid", form("trapezoids(dim)").promoted());
}

}  // namespace shardprop

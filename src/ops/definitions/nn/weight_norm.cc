// Weights as a direction and a length: the norm runs over every dim but one.

#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/forms/mapped.h"

#include <algorithm>

namespace shardprop {
namespace {

// `WeightTerms` holds the terms of the weight and of tensors with one element
// for each index of `dim`.
struct WeightTerms {
  Term weight;
  Term lengths;
};

WeightTerms weight_terms(const OpCall& call, const TensorMeta& weight) {
  const int rank = weight.rank();
  require(rank > 0, "the weight is a scalar");
  std::vector<int> others;
  const std::int64_t named = call.integer_or("dim", 0);
  // -1 means no dim: the full weight has one length.
  const int dim = named == -1 ? -1 : wrap_dim(named, rank);
  for (int d = 0; d < rank; ++d) {
    if (d != dim) others.push_back(d);
  }
  WeightTerms terms{term_of_dims(rank, others), {}};
  for (int d = 0; d < rank; ++d) {
    if (d == dim) {
      terms.lengths.add(FactorName::of_dim(d));
    } else {
      terms.lengths.any();
    }
  }
  return terms;
}

// Returns the term of the given lengths, which have the weight's rank, or of
// the only length.
Term given_lengths(const TensorMeta& given, const TensorMeta& weight,
                   const WeightTerms& terms) {
  if (given.numel() == 1) {
    Term lone;
    for (int d = 0; d < given.rank(); ++d) lone.any();
    return lone;
  }
  require(given.rank() == weight.rank(), "the lengths are of another rank");
  for (int d = 0; d < given.rank(); ++d) {
    require(size_of(given, d) == 1 ||
                terms.lengths.dims[index(d)].kind != TermDim::Kind::kAny,
            "the lengths run along another dim");
  }
  return terms.lengths;
}

Notation forward_notation(const OpCall& call) {
  const TensorMeta& weight = call.tensor("v");
  const WeightTerms terms = weight_terms(call, weight);
  const Term lengths = given_lengths(call.tensor("g"), weight, terms);
  return {{terms.weight, lengths}, {terms.weight, lengths}, {}, {}};
}

Notation backward_notation(const OpCall& call) {
  const TensorMeta& weight = call.tensor("saved_v");
  const WeightTerms terms = weight_terms(call, weight);
  const TensorMeta& given = call.tensor("saved_g");
  require(call.tensor("saved_norms").numel() == given.numel(),
          "there is not a length for each norm");
  // -1 means no dim.
  const std::int64_t named = call.integer("dim");
  require(
      given.numel() ==
          (named == -1 ? 1 : size_of(weight, wrap_dim(named, weight.rank()))),
      "the lengths are not those of dim");
  const Term lengths = given_lengths(given, weight, terms);
  return {{terms.weight, terms.weight, lengths, lengths},
          {terms.weight, lengths},
          {},
          {}};
}

Notation length_notation(const OpCall& call) {
  const WeightTerms terms = weight_terms(call, call.tensor("v"));
  const bool of_all = call.integer("dim") == -1;
  return {{terms.weight}, {of_all ? Term() : terms.lengths}, {}, {}};
}

}  // namespace

void words_of_weight_norm(RuleWords& words) {
  words.form(mapped("weight_norm(dim)", forward_notation));
  words.form(mapped("weight_norm_backward(dim)", backward_notation));
  words.form(mapped("norm_except(dim)", length_notation));
}

void define_weight_norm(Family f) {
  const auto forward =
      in_order(form("weight_norm(dim)").nonempty().normalises());
  f.add("_weight_norm", OpDefinition(forward).linear_in("g"));
  // The second result is the norm of the direction.
  f.add("_weight_norm_interface", forward);
  f.add({"_weight_norm_interface_backward",
         "_weight_norm_differentiable_backward"},
        in_order(form("weight_norm_backward(dim)")
                     .nonempty()
                     .normalises()
                     .linear_in("grad_w")));
  f.add("norm_except_dim", form("norm_except(dim)").nonempty().normalises());
}

}  // namespace shardprop

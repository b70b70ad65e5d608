// This file defines dropout and random truth values.

#include "ops/argument_reads.h"
#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/space/arithmetic.h"

namespace shardprop {
namespace {

void check_probability(const OpCall& call) {
  if (!call.has("p")) return;
  const double p = call.op().float_arg("p").value_or(0);
  require(p >= 0 && p <= 1, "`p` is not a probability");
}

// Dropout changes no element outside of training.
DType of_dropout(const OpCall& call, std::size_t result) {
  require(!counts(call.first().dtype()) || !call.boolean_or("train", true) ||
              call.op().float_arg("p").value_or(0) == 0,
          "integers are scaled up");
  check_probability(call);
  return result == 0 ? call.first().dtype() : DType::kBool;
}

DType of_bernoulli(const OpCall& call, std::size_t) {
  check_probability(call);
  return call.first().dtype();
}

}  // namespace

void words_of_dropout(RuleWords& words) {
  words.dtype("dropout", of_dropout);
  words.dtype("bernoulli", of_bernoulli);
}

void define_dropout(Family f) {
  f.add("native_dropout", same_shape(2)
                              .typed("dropout()")
                              .like({"input"})
                              .random()
                              .draws(Distribution::kDropout));
  constexpr std::pair<std::string_view, Distribution> kDropouts[] = {
      {"dropout", Distribution::kDropout},
      {"feature_dropout", Distribution::kFeatureDropout},
      {"alpha_dropout", Distribution::kAlphaDropout},
      {"feature_alpha_dropout", Distribution::kFeatureAlphaDropout}};
  for (const auto& [name, how] : kDropouts) {
    f.add(name,
          same_shape().typed("dropout()").like({"input"}).random().draws(how));
  }
  const auto bernoulli = [] {
    return same_shape()
        .typed("bernoulli()")
        .random()
        .draws(Distribution::kBernoulli);
  };
  f.add({"bernoulli", "bernoulli.p"}, bernoulli());
  f.add("bernoulli.Tensor", bernoulli().like({"self"}));
}

}  // namespace shardprop

// Random numbers: each element comes from the stream at its position in the
// full tensor.

#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/forms/mapped.h"
#include "ops/op_call.h"

#include <string_view>
#include <utility>

namespace shardprop {

namespace {

// The results are the function and the noise that it sampled; each has the
// memory order of its operand.
BoundForm bind_rrelu(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& noise = call.tensor("noise");
  require(noise.shape() == self.shape(), "the noise has another shape");
  SpaceBuilder b;
  const Operand whole = b.per_dim(self.shape());
  b.input(whole);
  b.input(whole);
  for (const TensorMeta* like : {&self, &noise}) {
    b.output(
        whole,
        {.strides = dense_like(*like, like->shape(), like->dtype()).strides()});
  }
  return b.bound();
}

}  // namespace

void words_of_random(RuleWords& words) {
  words.form(custom("rrelu_with_noise()", bind_rrelu));
}

void define_random(Family f) {
  f.add({"random", "_standard_gamma"}, same_shape().like({"self"}).random());
  constexpr std::pair<std::string_view, Distribution> kFilled[] = {
      {"uniform", Distribution::kUniform},
      {"normal_functional", Distribution::kNormal},
      {"exponential", Distribution::kExponential},
      {"geometric", Distribution::kGeometric},
      {"log_normal", Distribution::kLogNormal},
      {"cauchy", Distribution::kCauchy},
      {"poisson", Distribution::kPoisson}};
  for (const auto& [name, how] : kFilled) {
    f.add(name, same_shape().like({"self"}).random().draws(how));
  }
  f.add("_sample_dirichlet", contiguous(mapped("...{n}->...{n}")).random());
  f.add({"_standard_gamma_grad", "_dirichlet_grad"},
        contiguous(pointwise().promoted()));
  f.add({"normal.Tensor_float", "normal.Tensor_Tensor", "normal.float_Tensor"},
        contiguous(pointwise()).random().draws(Distribution::kNormal));
  f.add("rrelu_with_noise_functional",
        form("rrelu_with_noise()").typed("self,noise").random());
  f.add("binomial", contiguous(pointwise()).random());
  f.add("normal.float_float", factory("size")
                                  .typed("given(dtype,f32)")
                                  .random()
                                  .draws(Distribution::kNormal));
}

}  // namespace shardprop

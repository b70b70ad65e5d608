// Softmax over a sharded dim exchanges a maximum and a sum, not the tensor.

#include "ops/definitions/families.h"
#include "ops/definitions/words.h"

namespace shardprop {
namespace {

constexpr std::string_view kOfSoftmax =
    "if(half_to_float,promote(f32,half(first)),"
    "only_floating(given(dtype,first)))";

DType of_input(const OpCall& call, std::size_t) {
  const DType own = call.tensor("grad_output").dtype();
  const DType input = call.dtype_or("input_dtype", own);
  require(own == call.tensor("output").dtype(),
          "the gradient and the output are of two dtypes");
  require(input == own || (own == DType::kF32 && item_size(input) == 2),
          "`input_dtype` is not the gradient's, nor half");
  return input;
}

OpDefinition over_dim(std::string_view program) {
  return along("dim").typed(kOfSoftmax).decomposed(program).normalises();
}

constexpr std::string_view kSoftmax = R"(
x = cast(self, dtype(out))
e = exp(x - amax(x, [dim], True))
return e / sum(e, [dim], True))";

constexpr std::string_view kLogSoftmax = R"(
x = cast(self, dtype(out))
s = x - amax(x, [dim], True)
return s - log(sum(exp(s), [dim], True)))";

constexpr std::string_view kSoftmaxBackward = R"(
g = grad_output * output
return cast(g - output * sum(g, [dim], True), dtype(out)))";

constexpr std::string_view kLogSoftmaxBackward = R"(
return cast(grad_output - exp(output) * sum(grad_output, [dim], True), dtype(out)))";

OpDefinition gradient_along(std::string_view program) {
  return along("dim").typed("input()").decomposed(program).normalises();
}

}  // namespace

void words_of_softmax(RuleWords& words) { words.dtype("input", of_input); }

void define_softmax(Family f) {
  f.add({"_softmax", "softmax"}, over_dim(kSoftmax));
  f.add({"_log_softmax", "log_softmax"}, over_dim(kLogSoftmax));
  f.add("_safe_softmax", along("dim").typed(kOfSoftmax).normalises());
  f.add("_softmax_backward_data", gradient_along(kSoftmaxBackward));
  f.add("_log_softmax_backward_data", gradient_along(kLogSoftmaxBackward));
}

}  // namespace shardprop

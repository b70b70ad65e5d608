// This file defines losses of classes and of elements.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/forms/indices.h"
#include "ops/forms/losses.h"
#include "ops/space/arithmetic.h"

#include <string>
#include <string_view>

namespace shardprop {
namespace {

// Targets that are probabilities take part in promotion.
DType of_self(const OpCall& call, std::size_t) {
  const DType own = call.tensor("self").dtype();
  const DType target = call.tensor("target").dtype();
  return is_floating(target) ? promote_types(own, target) : own;
}

void check_images(const OpCall& call, const IndexSpace&) {
  require(call.tensor("self").rank() == 4 && call.tensor("target").rank() == 3,
          "the input is not a batch of images");
}

void check_samples(const OpCall& call, const IndexSpace&) {
  const int rank = call.tensor("self").rank();
  require(rank == 1 || rank == 2, "the input is not a batch of samples");
}

void check_class_numbers(const OpCall& call) {
  const DType target = call.tensor("target").dtype();
  require(target == DType::kI64 || target == DType::kU8,
          "the targets are not class numbers");
}

void check_weights(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta* weight = call.optional_tensor("weight");
  require(weight == nullptr ||
              (weight->rank() == 1 && self.rank() > 0 &&
               size_of(*weight, 0) == size_of(self, self.rank() == 1 ? 0 : 1)),
          "the weights are not one per class");
}

// Returns the shape of targets that are class indices.
Dims samples_of(const TensorMeta& self) {
  Dims shape = self.shape();
  shape.erase(shape.begin() + (self.rank() == 1 ? 0 : 1));
  return shape;
}

// Classes are dim 1 (dim 0 of a single sample). A target is one class per
// sample, or one probability for each class. Samples are terms of a sum if
// their losses are summed. A mean needs a program, because weights and ignored
// targets make it a quotient. Programs also shard the classes: the rank with
// the target class has the loss. `is_whole_loss` includes the softmax; such a loss
// also accepts probabilities.
BoundForm bind_class_loss(const OpCall& call, bool is_whole_loss,
                          bool forward) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& target = call.tensor("target");
  require(self.rank() >= 1, "the input has no classes");
  if (!is_whole_loss) check_class_numbers(call);
  check_weights(call);
  const std::size_t classes = self.rank() == 1 ? 0 : 1;
  const bool probabilities = target.shape() == self.shape() && is_whole_loss;
  require(probabilities || target.shape() == samples_of(self),
          "the targets do not match the samples");
  require(probabilities == is_floating(target.dtype()),
          "targets are whole numbers, or probabilities of the input's shape");
  SpaceBuilder b;
  const Operand whole = b.per_dim(self.shape());
  Operand samples = whole;
  samples.dims.erase(samples.dims.begin() +
                     static_cast<std::ptrdiff_t>(classes));
  const DimFactors over = whole.dims[classes];
  if (is_whole_loss) {
    b.block(over, "each sample is normalised over it");
  } else {
    look_up_by_program(b.space, over);
  }
  const LossReduction reduction = reduction_of(call);
  const bool mean = reduction == LossReduction::kMean;
  for (const DimFactors& dim : samples.dims) {
    if (mean) b.block(dim, "the loss is a mean over it");
  }
  for (const TensorMeta& meta : call.op().inputs) {
    b.input(&meta == &self     ? whole
            : &meta == &target ? (probabilities ? whole : samples)
                               : Operand{{over}});
  }
  b.output(reduction == LossReduction::kNone ? samples : Operand{});
  if (forward) b.output(Operand{});
  // The sum of weights is a term of a sum if the losses are summed, or if there
  // is a single sample. Otherwise it is the same on every rank.
  const Without sum = Without::partial(ReduceOp::kSum);
  const bool sums = reduction == LossReduction::kSum;
  const Without weights =
      sums || (!mean && self.rank() == 1) ? sum : Without::same();
  if (!is_whole_loss) b.without(0, over, mean ? Without::same() : sum);
  if (forward) b.without(1, over, weights);
  for (const DimFactors& dim : samples.dims) {
    if (sums) b.without(0, dim, sum);
    if (forward && !mean) b.without(1, dim, weights);
  }
  return b.bound();
}

// A rank ignores targets whose class is on another rank. For a mean, the ranks
// exchange two sums, that of the losses and that of the weights.
constexpr std::string_view kClassLoss = R"(
c = class_dim(self)
w = default(weight, None)
w = upcast(w) if weight
local = as_index(target) - offset(self, c)
skip = (local < 0) | (local >= local_size(self, c)) | (target == ignore_index)
local = masked_fill(local, skip, -100)
mean = reduction == 1
how = reduction
how = 2 if mean
x = upcast(self)
flat = rank(self) < 3
x = unsqueeze(flatten(x, 2), -1) if not flat
local = unsqueeze(flatten(local, 1), -1) if not flat
part, held = nll_loss_forward(x, local, w, how, -100) if flat
part, held = nll_loss2d_forward(x, local, w, how, -100) if not flat
spread = (flat == False) * (reduction == 0) == 1
part = reshape_as(part, target) if spread
sums = all_reduce_sum(stack([part, held])) if mean
held = select(sums, 0, 1) if mean
part = select(sums, 0, 0) / held if mean
return cast(part, dtype(out)), cast(held, dtype(out, 1)))";

constexpr std::string_view kClassLossBackward = R"(
c = class_dim(self)
local = as_index(target) - offset(self, c)
skip = (local < 0) | (local >= local_size(self, c)) | (target == ignore_index)
local = masked_fill(local, skip, -100)
w = default(weight, None)
flat = rank(self) < 3
g = nll_loss_backward(grad_output, self, local, w, reduction, -100, total_weight) if flat
g = nll_loss2d_backward(grad_output, self, local, w, reduction, -100, total_weight) if not flat
return g)";

// The ranks exchange the log-sum-exp and the entry of the target class.
constexpr std::string_view kCrossEntropy = R"(
c = class_dim(self)
soft = is_floating(target)
hard = soft == False
mean = reduction == 1
x = upcast(self)
s = x - amax(x, [c], True)
p = s - log(sum(exp(s), [c], True))
w = trailing(upcast(weight), rank(self) - 1 - c) if weight
p = p * w if weight
smooth = 0 < label_smoothing
rest = label_smoothing / size(self, c)
q = upcast(target) if soft
blend = soft * smooth == 1
q = q * (1 - label_smoothing) + rest if blend
loss = sum(p * q, [c]) if soft
t = as_index(target) if hard
hit = unsqueeze(t, c) == trailing(places(self, c), rank(self) - 1 - c) if hard
loss = sum(masked_fill(p, bitwise_not(hit), 0), [c]) if hard
blend = hard * smooth == 1
loss = loss * (1 - label_smoothing) + sum(p, [c]) * rest if blend
ignored = t == ignore_index if hard
loss = masked_fill(loss, ignored, 0) if hard
loss = neg(loss)
loss = sum(loss) if mean
summed = reduction == 2
loss = sum(loss, dtype=dtype(out)) if summed
by_count = mean * hard * is_none(weight) == 1
total = cast(bitwise_not(ignored), dtype(loss)) if by_count
by_weight = mean * hard * (is_none(weight) == False) == 1
total = masked_fill(sum(hit * w, [c]), ignored, 0) if by_weight
quotient = mean * hard == 1
sums = whole(stack([loss, sum(total)])) if quotient
loss = select(sums, 0, 0) / select(sums, 0, 1) if quotient
quotient = mean * soft == 1
loss = loss / (numel(self) / size(self, c)) if quotient
return cast(loss, dtype(out)))";

OpDefinition class_loss(std::string_view word) {
  return form(word).typed("self()").below("target", IndexBound::kClasses);
}

BoundForm bind_class_loss_backward(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  require(self.rank() >= 1, "the input has no classes");
  check_class_numbers(call);
  check_weights(call);
  require(call.tensor("target").shape() == samples_of(self),
          "the targets do not match the samples");
  const bool is_reduced = reduction_of(call) != LossReduction::kNone;
  require(call.tensor("total_weight").numel() == 1 &&
              call.tensor("grad_output").shape() ==
                  (is_reduced ? Dims{} : samples_of(self)),
          "the gradient does not have the shape of the loss");
  SpaceBuilder b;
  const Operand whole = b.per_dim(self.shape());
  Operand samples = whole;
  const auto classes = samples.dims.begin() + (self.rank() == 1 ? 0 : 1);
  const DimFactors over = *classes;
  look_up_by_program(b.space, over);
  samples.dims.erase(classes);
  const std::size_t target = call.operand("target");
  const std::size_t gradient = call.operand("grad_output");
  for (std::size_t i = 0; i < call.op().inputs.size(); ++i) {
    const TensorMeta& meta = call.op().inputs[i];
    const bool by_sample = i == target || (i == gradient && !is_reduced);
    b.input(&meta == &self ? whole
            : by_sample    ? samples
            : &meta == call.optional_tensor("weight")
                ? Operand{{over}}
                : SpaceBuilder::whole(meta.rank()));
  }
  b.output(whole);
  return b.bound();
}

// The gradient is a multiple of self - target.
void linear_in_difference(const OpCall& call, IndexSpace& space) {
  if (!is_floating(call.tensor("self").dtype())) return;
  const std::size_t terms[] = {call.operand("self"), call.operand("target")};
  for (const ReduceOp kind : {ReduceOp::kSum, ReduceOp::kAvg}) {
    std::vector<std::optional<ReduceOp>> both(space.inputs.size());
    for (const std::size_t term : terms) both[term] = kind;
    add_linearity(call, space, both, partials(space.outputs.size(), kind));
  }
  for (const std::size_t term : terms) {
    add_single_linearity(call, space, term, ReduceOp::kAvg, ReduceOp::kAvg);
  }
}

// If another operand has more elements than the input, the gradient has the
// broadcast shape. Its strides are those of a pointwise result of all operands.
Dims strides_of_gradient(const OpCall& call, const Dims& shape, DType dtype) {
  if (shape == call.tensor("self").shape()) {
    return make_meta(shape, dtype).strides();
  }
  const TensorMeta operands[] = {call.tensor("self"), call.tensor("target"),
                                 call.tensor("grad_output")};
  return elementwise(operands, dtype).strides();
}

// The gradient of an average of targets is the average of their gradients.
void averages_targets(const OpCall& call, IndexSpace& space) {
  add_single_linearity(call, space, call.operand("target"), ReduceOp::kAvg,
                       ReduceOp::kAvg);
}

// The loss is affine in the positive weights.
void averages_positive_weights(const OpCall& call, IndexSpace& space) {
  const TensorMeta* weights = call.optional_tensor("pos_weight");
  if (weights == nullptr || !is_floating(weights->dtype())) return;
  add_single_linearity(call, space, call.operand("pos_weight"), ReduceOp::kAvg,
                       ReduceOp::kAvg);
}

// Sums of integers are i64, and truth values cannot be subtracted.
DType of_absolute(const OpCall& call, std::size_t) {
  const DType dtype = promoted_dtype(call);
  const LossReduction reduction = reduction_of(call);
  for (const TensorMeta& meta : call.op().inputs) {
    require(meta.dtype() != DType::kBool, "truth values are subtracted");
  }
  require(!is_integral(dtype) || reduction != LossReduction::kMean,
          "a mean of integers has no dtype");
  return is_integral(dtype) && reduction == LossReduction::kSum
             ? DType::kI64
             : real_dtype(dtype);
}

}  // namespace

void words_of_loss(RuleWords& words) {
  words.form(custom("cross_entropy()", [](const OpCall& call) {
    return bind_class_loss(call, true, false);
  }));
  words.form(custom("class_loss()", [](const OpCall& call) {
    return bind_class_loss(call, false, false);
  }));
  words.form(custom("class_loss(total_weight)", [](const OpCall& call) {
    return bind_class_loss(call, false, true);
  }));
  words.check("batch_of_images()", check_images);
  words.check("batch_of_samples()", check_samples);
  words.form(custom("class_loss_backward()", bind_class_loss_backward));
  words.modifier("averages_targets()", averages_targets);
  words.modifier("averages_positive_weights()", averages_positive_weights);
  words.modifier("linear_in_difference()", linear_in_difference);
  words.dtype("self", of_self);
  words.dtype("absolute", of_absolute);
  words.strides("loss_gradient", strides_of_gradient);
}

void define_loss(Family f) {
  f.add("cross_entropy_loss",
        class_loss("cross_entropy()").decomposed(kCrossEntropy).normalises());
  f.add("nll_loss_nd",
        class_loss("class_loss()").per_rank(kClassLoss, FactorKind::kBlocked));
  for (const bool of_images : {false, true}) {
    const std::string name = of_images ? "nll_loss2d" : "nll_loss";
    const std::string_view check =
        of_images ? "batch_of_images()" : "batch_of_samples()";
    f.add(name, class_loss("class_loss()")
                    .checked(check)
                    .per_rank(kClassLoss, FactorKind::kBlocked));
    f.add(name + "_forward", class_loss("class_loss(total_weight)")
                                 .checked(check)
                                 .per_rank(kClassLoss, FactorKind::kBlocked));
    f.add(name + "_backward",
          in_order(form("class_loss_backward()")
                       .typed("self()")
                       .checked(check)
                       .below("target", IndexBound::kClasses)
                       .linear_in("grad_output")
                       .per_rank(kClassLossBackward)));
  }
  f.add({"mse_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss"},
        elementwise_loss().elementwise({"self", "target"}));
  f.add("l1_loss",
        elementwise_loss("absolute()").elementwise({"self", "target"}));
  f.add("binary_cross_entropy", elementwise_loss()
                                    .elementwise({"self", "target", "weight"})
                                    .checked("input_like_target()")
                                    .linear_in("weight"));
  f.add("binary_cross_entropy_with_logits",
        elementwise_loss()
            .elementwise({"target", "self", "weight", "pos_weight"})
            .checked("logit_per_target()")
            .linear_in("weight")
            .refine("averages_targets()")
            .refine("averages_positive_weights()"));
  f.add({"kl_div", "hinge_embedding_loss"},
        elementwise_loss().elementwise({"target", "self"}));
  f.add("margin_ranking_loss",
        elementwise_loss().elementwise({"target", "input1", "input2"}));
  f.add("poisson_nll_loss",
        elementwise_loss().elementwise({"input", "target"}));
  const auto mean_gradient = [](std::string_view op, std::string_view more) {
    return elementwise_loss_gradient(std::string(op) +
                                     "(grad_output, self, target, 2" +
                                     std::string(more) + ")");
  };
  const auto gradient = [&](std::string_view op, std::string_view more = {}) {
    return mean_gradient(op, more).strided("loss_gradient");
  };
  f.add("mse_loss_backward",
        gradient("mse_loss_backward").refine("linear_in_difference()"));
  f.add("smooth_l1_loss_backward",
        gradient("smooth_l1_loss_backward", ", beta"));
  f.add("huber_loss_backward", gradient("huber_loss_backward", ", delta"));
  f.add("binary_cross_entropy_backward",
        elementwise_loss_gradient("binary_cross_entropy_backward(grad_output, "
                                  "self, target, default(weight, None), 2)",
                                  true)
            .elementwise({"self", "target", "grad_output", "weight"})
            .refine("averages_targets()"));
  f.add("soft_margin_loss_backward",
        mean_gradient("soft_margin_loss_backward", "")
            .elementwise({"target", "self", "grad_output"}));
}

}  // namespace shardprop

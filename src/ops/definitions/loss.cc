// Losses of classes and of elements.

#include "ops/definitions/dtypes.h"
#include "ops/definitions/families.h"
#include "ops/forms/losses.h"

#include <string>
#include <string_view>

namespace shardprop {
namespace {

// Targets that are probabilities promote.
DType of_self(const OpCall& call, std::size_t) {
  const DType own = call.tensor("self").dtype();
  const DType target = call.tensor("target").dtype();
  return is_floating(target) ? promote_types(own, target) : own;
}

// Ranks and dtypes by the operator's name.
void check_classes(const OpCall& call) {
  const std::string_view name = call.base_name();
  const TensorMeta& self = call.tensor("self");
  const DType target = call.tensor("target").dtype();
  if (name.starts_with("nll_loss2d")) {
    require(self.rank() == 4 && call.tensor("target").rank() == 3,
            "the input is not a batch of images");
  } else if (name == "nll_loss" || name.starts_with("nll_loss_forward") ||
             name.starts_with("nll_loss_backward")) {
    require(self.rank() == 1 || self.rank() == 2,
            "the input is not a batch of samples");
  }
  require(name == "cross_entropy_loss" || target == DType::kI64 ||
              target == DType::kU8,
          "the targets are not class numbers");
  const TensorMeta* weight = call.optional_tensor("weight");
  require(weight == nullptr ||
              (weight->rank() == 1 && self.rank() > 0 &&
               weight->size(0) == self.size(self.rank() == 1 ? 0 : 1)),
          "the weights are not one per class");
}

// The shape of the targets that name classes.
Dims samples_of(const TensorMeta& self) {
  Dims shape = self.shape();
  shape.erase(shape.begin() + (self.rank() == 1 ? 0 : 1));
  return shape;
}

Dims samples_of_last(const TensorMeta& self) {
  Dims shape = self.shape();
  shape.pop_back();
  return shape;
}

// Targets name classes: ranks that hold some of them look at their own
// targets, by a program.
void name_classes(IndexSpace& space, const DimFactors& classes,
                  bool by_program) {
  for (const FactorId id : classes) {
    Factor& factor = space.factor(id);
    factor.kind = FactorKind::kIndexed;
    factor.reason = "targets name its elements";
    if (by_program) factor.program = ProgramUse::kWhenSharded;
    factor.least = 1;
  }
}

// Classes in dim 1 (dim 0 of a lone sample), one target per sample. Sums add up
// and, of losses that come with the sum of the weights (`forward`), over the
// classes as well. Weights and ignored targets make a mean a quotient of sums,
// taken by a program; that of probabilities is a plain mean.
BoundForm bind_class_loss(const OpCall& call, bool forward) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& target = call.tensor("target");
  const TensorMeta* weight = call.optional_tensor("weight");
  require(self.rank() >= 1, "the input has no classes");
  check_classes(call);
  const std::size_t at = self.rank() == 1 ? 0 : 1;
  SpaceBuilder b;
  const Operand whole = b.per_dim(self.shape());
  const DimFactors classes = whole.dims[at];
  name_classes(b.space, classes, forward);
  Operand samples = whole;
  samples.dims.erase(samples.dims.begin() + static_cast<std::ptrdiff_t>(at));
  const bool probabilities = target.shape() == self.shape() &&
                             call.base_name() == "cross_entropy_loss";
  require(probabilities || target.shape() == samples_of(self),
          "the targets do not match the samples");
  for (const TensorMeta& meta : call.op().inputs) {
    b.input(&meta == &self     ? whole
            : &meta == &target ? (probabilities ? whole : samples)
            : &meta == weight  ? Operand{{classes}}
                               : SpaceBuilder::whole(meta.rank()));
  }
  const LossReduction reduction = reduction_of(call);
  b.output(reduction == LossReduction::kNone ? samples : Operand{});
  if (forward) b.output(Operand{});
  const Without sum = Without::partial(ReduceOp::kSum);
  const auto outputs = static_cast<int>(b.space.outputs.size());
  for (int o = 0; o < outputs; ++o) {
    // No weights are added up, but for a lone sample's.
    const bool no_weights =
        o == 1 && reduction == LossReduction::kNone && self.rank() > 1;
    for (const DimFactors& dim : samples.dims) {
      if (reduction == LossReduction::kSum) b.without(o, dim, sum);
      if (no_weights) b.without(o, dim, Without::same());
    }
    if (!forward) continue;
    b.without(o, classes,
              reduction == LossReduction::kMean || no_weights ? Without::same()
                                                              : sum);
  }
  if (reduction != LossReduction::kMean) return b.bound();
  for (const DimFactors& dim : samples.dims) {
    if (!probabilities) {
      b.block(dim, "the loss is reduced over it");
      continue;
    }
    b.without(0, dim, Without::partial(ReduceOp::kAvg));
    // A mean over unequal shards is not the mean of their means.
    for (const FactorId id : dim) b.space.factor(id).even = true;
  }
  return b.bound();
}

// Class numbers among those that a rank holds; -1 elsewhere, which is ignored.
std::string own_classes(std::string_view dim) {
  std::string text = R"(
c = cast(target, dtype(arange(1))) - offset(self, DIM)
outside = (c < 0) | (c >= local_size(self, DIM)) | eq(target, ignore_index)
t = masked_fill(c, outside, -1)
)";
  for (std::size_t at = text.find("DIM"); at != std::string::npos;
       at = text.find("DIM")) {
    text.replace(at, 3, dim);
  }
  return text;
}

// Samples and classes of which each rank holds some.
std::string class_sums(std::string_view op, std::string_view dim) {
  return own_classes(dim) +
         "mean = same(reduction, 1)\n"
         "none = same(reduction, 0)\n"
         "how = 2\n"
         "how = 0 if none\n"
         "w = default(weight, None)\n"
         "w = upcast(w) if weight\n"
         "part, held = " +
         std::string(op) +
         "(upcast(self), t, w, how, -1)\n"
         "sums = all_reduce_sum(stack([part, held])) if mean\n"
         "held = select(sums, 0, 1) if mean\n"
         "part = select(sums, 0, 0) / held if mean\n"
         "return cast(part, dtype(out)), cast(held, dtype(out, 1))";
}

OpDefinition class_loss_forward(std::string_view op, std::string_view dim) {
  return custom("class_loss()",
                [](const OpCall& call) { return bind_class_loss(call, true); })
      .typed(of_self)
      .refine("", below("target", classes_of_self))
      .per_rank(class_sums(op, dim), FactorKind::kBlocked);
}

// The mean over samples of which each rank holds some, of losses that do not
// come with the sum of the weights.
std::string class_mean(std::string_view op, std::string_view more) {
  return "w = default(weight, None)\n"
         "w = upcast(w) if weight\n"
         "ignored = eq(target, ignore_index)\n"
         "part = " +
         std::string(op) + "(upcast(self), target, w, 2, ignore_index" +
         std::string(more) + R"()
held = sum(bitwise_not(ignored), dtype=dtype(part))
at = cast(masked_fill(target, ignored, 0), dtype(arange(1))) if weight
held = sum(masked_fill(index(w, indices_at(0, at)), ignored, 0)) if weight
sums = all_reduce_sum(stack([part, held]))
return cast(select(sums, 0, 0) / select(sums, 0, 1), dtype(out)))";
}

OpDefinition class_loss(std::string_view op, std::string_view more = {}) {
  return custom("class_loss()",
                [](const OpCall& call) { return bind_class_loss(call, false); })
      .typed(of_self)
      .refine("", below("target", classes_of_self))
      .per_rank(class_mean(op, more), FactorKind::kBlocked);
}

BoundForm bind_class_loss_backward(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  check_classes(call);
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
  const auto at = samples.dims.begin() + (self.rank() == 1 ? 0 : 1);
  const DimFactors classes = *at;
  name_classes(b.space, classes, true);
  samples.dims.erase(at);
  const TensorMeta* weight = call.optional_tensor("weight");
  const std::size_t target = call.operand("target");
  const std::size_t gradient = call.operand("grad_output");
  for (std::size_t i = 0; i < call.op().inputs.size(); ++i) {
    const TensorMeta& meta = call.op().inputs[i];
    const bool by_sample = i == target || (i == gradient && !is_reduced);
    b.input(&meta == &self    ? whole
            : by_sample       ? samples
            : &meta == weight ? Operand{{classes}}
                              : SpaceBuilder::whole(meta.rank()));
  }
  b.output(whole);
  return b.bound();
}

OpDefinition class_loss_backward(std::string_view op, std::string_view dim) {
  return custom("class_loss_backward()", bind_class_loss_backward)
      .typed(of_self)
      .refine("", below("target", classes_of_self))
      .linear_in("grad_output")
      .per_rank(own_classes(dim) + "return " + std::string(op) +
                "(grad_output, self, t, weight, reduction, -1, total_weight)");
}

// Margins between the classes (the last dim) of each sample; targets name one
// class a sample, or several (`many`), which come back marked. Without a dim of
// samples there is one; what then has one element may have a dim or none.
struct Margins {
  Operand whole;
  Operand samples;
  Operand targets;
  Dims loss;  // unreduced
  LossReduction reduction;
};

bool holds_one_sample(const TensorMeta& meta, std::int64_t elements) {
  return meta.rank() <= 1 && meta.numel() == elements;
}

Margins margins(const OpCall& call, SpaceBuilder& b, bool many) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& target = call.tensor("target");
  require(self.rank() <= 2, "the input is not a batch of samples");
  const bool is_batch = self.rank() == 2;
  const std::int64_t classes =
      self.rank() == 0 ? 1 : self.size(self.rank() - 1);
  require(classes > 0, "the input has no classes");
  require(is_floating(self.dtype()), "the input is not of floats");
  require(target.dtype() == DType::kI64, "the targets are not class numbers");
  require(is_batch
              ? target.shape() == (many ? self.shape() : samples_of_last(self))
              : holds_one_sample(target, many ? classes : 1),
          "the targets do not match the samples");
  const TensorMeta* weight = call.optional_tensor("weight");
  require(weight == nullptr || (holds_one_sample(*weight, classes) &&
                                weight->dtype() == self.dtype()),
          "the weights are not one per class, of the input's dtype");
  Margins m;
  m.reduction = reduction_of(call);
  m.whole = b.per_dim(self.shape());
  m.samples = m.whole;
  if (self.rank() > 0) {
    b.block(m.whole.dims.back(), "targets name its elements",
            FactorKind::kIndexed);
    m.samples.dims.pop_back();
  }
  m.targets = is_batch ? (many ? m.whole : m.samples)
                       : SpaceBuilder::whole(target.rank());
  m.loss = is_batch ? samples_of_last(self) : many ? Dims{} : target.shape();
  for (const TensorMeta& meta : call.op().inputs) {
    b.input(&meta == &self     ? m.whole
            : &meta == &target ? m.targets
                               : SpaceBuilder::whole(meta.rank()));
  }
  return m;
}

BoundForm bind_margin_loss(const OpCall& call, bool many) {
  SpaceBuilder b;
  const Margins m = margins(call, b, many);
  const bool is_reduced = m.reduction != LossReduction::kNone;
  if (is_reduced) {
    b.output(Operand{});
  } else {
    Operand loss = m.samples;
    loss.dims.resize(m.loss.size());
    b.output(std::move(loss), {.shape = m.loss});
  }
  if (call.base_name() == "multilabel_margin_loss_forward") {
    b.output(m.targets, {.shape = call.tensor("target").shape()});
  }
  for (const DimFactors& dim : m.samples.dims) {
    if (!is_reduced) break;
    const bool mean = m.reduction == LossReduction::kMean;
    b.without(0, dim, Without::partial(mean ? ReduceOp::kAvg : ReduceOp::kSum));
    // A mean over unequal shards is not the mean of their means.
    for (const FactorId id : dim) b.space.factor(id).even = mean;
  }
  return b.bound();
}

BoundForm bind_margin_loss_backward(const OpCall& call, bool many) {
  SpaceBuilder b;
  const Margins m = margins(call, b, many);
  const bool is_reduced = m.reduction != LossReduction::kNone;
  const TensorMeta& gradient = call.tensor("grad_output");
  const bool is_batch = call.tensor("self").rank() == 2;
  require(is_batch ? gradient.shape() == (is_reduced ? Dims{} : m.loss)
                   : holds_one_sample(gradient, 1),
          "the gradient does not have the shape of the loss");
  if (!is_reduced && is_batch) {
    b.space.inputs[call.operand("grad_output")] = m.samples;
  }
  if (many) {
    require(call.tensor("is_target").shape() == call.tensor("target").shape(),
            "the marks do not match the targets");
    b.space.inputs[call.operand("is_target")] = m.targets;
  }
  for (const DimFactors& dim : m.samples.dims) {
    if (m.reduction != LossReduction::kMean) break;
    b.block(dim, "the loss is a mean over it");
  }
  b.output(m.whole);
  return b.bound();
}

// Unreduced, these are sums and products of their operands.
// Sums of integers are wide, and of truth values there are no differences.
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

void define_loss(Family f) {
  f.add("cross_entropy_loss",
        class_loss("cross_entropy_loss", ", label_smoothing").normalises());
  for (const char* name : {"nll_loss", "nll_loss_nd", "nll_loss2d"}) {
    f.add(name, class_loss(name));
  }
  f.add("nll_loss_forward", class_loss_forward("nll_loss_forward", "-1"));
  f.add("nll_loss2d_forward", class_loss_forward("nll_loss2d_forward", "1"));
  f.add("nll_loss_backward", class_loss_backward("nll_loss_backward", "-1"));
  f.add("nll_loss2d_backward", class_loss_backward("nll_loss2d_backward", "1"));
  for (const char* loss : {"multi_margin_loss", "multilabel_margin_loss",
                           "multilabel_margin_loss_forward"}) {
    const bool many = std::string_view(loss) != "multi_margin_loss";
    f.add(loss, custom("margin_loss()",
                       [many](const OpCall& call) {
                         return bind_margin_loss(call, many);
                       })
                    .nonempty()
                    .normalises());
  }
  for (const bool many : {false, true}) {
    const char* gradient =
        many ? "multilabel_margin_loss_backward" : "multi_margin_loss_backward";
    f.add(gradient,
          custom("margin_loss_backward()",
                 [many](const OpCall& call) {
                   return bind_margin_loss_backward(call, many);
                 })
              .of("self")
              .linear_in("grad_output")
              .per_rank("return " + std::string(gradient) +
                            (many ? "(grad_output, self, target, 2, is_target)"
                                  : "(grad_output, self, target, p, margin, "
                                    "default(weight, None), 2)") +
                            " / size(self, 0)",
                        FactorKind::kBlocked));
  }
  f.add({"mse_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss"},
        elementwise_loss().elementwise({"self", "target"}));
  f.add("l1_loss",
        elementwise_loss().typed(of_absolute).elementwise({"self", "target"}));
  f.add("binary_cross_entropy",
        elementwise_loss().elementwise({"self", "target", "weight"}));
  f.add({"binary_cross_entropy_with_logits", "kl_div", "hinge_embedding_loss"},
        elementwise_loss().elementwise(
            {"target", "self", "weight", "pos_weight"}));
  f.add("margin_ranking_loss",
        elementwise_loss().elementwise({"target", "input1", "input2"}));
  f.add("poisson_nll_loss",
        elementwise_loss().elementwise({"input", "target"}));
  const auto gradient = [](std::string_view op, std::string_view more = {}) {
    return elementwise_loss_gradient(std::string(op) +
                                     "(grad_output, self, target, 2" +
                                     std::string(more) + ")");
  };
  f.add("mse_loss_backward", gradient("mse_loss_backward"));
  f.add("smooth_l1_loss_backward",
        gradient("smooth_l1_loss_backward", ", beta"));
  f.add("huber_loss_backward", gradient("huber_loss_backward", ", delta"));
  f.add("binary_cross_entropy_backward",
        elementwise_loss_gradient("binary_cross_entropy_backward(grad_output, "
                                  "self, target, default(weight, None), 2)")
            .elementwise({"self", "target", "grad_output", "weight"}));
  f.add("soft_margin_loss_backward",
        gradient("soft_margin_loss_backward")
            .elementwise({"target", "self", "grad_output"}));
}

}  // namespace shardprop

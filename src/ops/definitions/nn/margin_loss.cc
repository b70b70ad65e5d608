// This file defines losses of margins between classes.

#include "ops/definitions/families.h"
#include "ops/definitions/words.h"
#include "ops/forms/losses.h"

#include <string>
#include <string_view>

namespace shardprop {
namespace {

Dims margin_samples(const TensorMeta& self) {
  Dims shape = self.shape();
  shape.pop_back();
  return shape;
}

// `Margins` describes margins between the classes (the last dim) of each
// sample. A target is one class per sample, or several (`many`), which are also
// returned as marks. A tensor without a dim of samples has one sample. Operands
// with one element per sample may then be vectors or scalars.
struct Margins {
  Operand whole;
  Operand samples;
  Operand targets;
  Dims loss;  // its shape before the reduction
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
      self.rank() == 0 ? 1 : size_of(self, self.rank() - 1);
  require(classes > 0, "the input has no classes");
  require(is_floating(self.dtype()), "the input is not of floats");
  require(target.dtype() == DType::kI64, "the targets are not class numbers");
  require(is_batch
              ? target.shape() == (many ? self.shape() : margin_samples(self))
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
  m.loss = is_batch ? margin_samples(self) : many ? Dims{} : target.shape();
  for (const TensorMeta& meta : call.op().inputs) {
    b.input(&meta == &self     ? m.whole
            : &meta == &target ? m.targets
                               : SpaceBuilder::whole(meta.rank()));
  }
  return m;
}

// `marks` says whether the marks of the targets are a result too.
BoundForm bind_margin_loss(const OpCall& call, bool many, bool marks) {
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
  if (marks) {
    b.output(m.targets, {.shape = call.tensor("target").shape()});
  }
  for (const DimFactors& dim : m.samples.dims) {
    if (!is_reduced) break;
    const bool mean = m.reduction == LossReduction::kMean;
    b.without(0, dim, Without::partial(mean ? ReduceOp::kAvg : ReduceOp::kSum));
    // The mean of unequal shards' means is not the mean.
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

}  // namespace

void words_of_margin_loss(RuleWords& words) {
  for (const bool many : {false, true}) {
    words.form(custom(many ? "multilabel_margin_loss()" : "margin_loss()",
                      [many](const OpCall& call) {
                        return bind_margin_loss(call, many, false);
                      }));
    words.form(custom(
        many ? "multilabel_margin_loss_backward()" : "margin_loss_backward()",
        [many](const OpCall& call) {
          return bind_margin_loss_backward(call, many);
        }));
  }
  words.form(custom(
      "multilabel_margin_loss(is_target)",
      [](const OpCall& call) { return bind_margin_loss(call, true, true); }));
}

void define_margin_loss(Family f) {
  f.add("multi_margin_loss", form("margin_loss()").nonempty().normalises());
  f.add("multilabel_margin_loss",
        form("multilabel_margin_loss()").nonempty().normalises());
  f.add("multilabel_margin_loss_forward",
        form("multilabel_margin_loss(is_target)").nonempty().normalises());
  for (const bool many : {false, true}) {
    const char* gradient =
        many ? "multilabel_margin_loss_backward" : "multi_margin_loss_backward";
    f.add(gradient,
          form(many ? "multilabel_margin_loss_backward()"
                    : "margin_loss_backward()")
              .of("self")
              .linear_in("grad_output")
              .per_rank("return " + std::string(gradient) +
                            (many ? "(grad_output, self, target, 2, is_target)"
                                  : "(grad_output, self, target, p, margin, "
                                    "default(weight, None), 2)") +
                            " / size(self, 0)",
                        FactorKind::kBlocked));
  }
}

}  // namespace shardprop

// Losses of classes and of elements.

#include "ops/definitions/families.h"

namespace shardprop {
namespace {

enum Reduction : std::int64_t { kNone = 0, kMean = 1, kSum = 2 };

// Targets that are probabilities promote.
DType of_self(const OpCall& call, std::size_t) {
  const DType own = call.tensor("self").dtype();
  const DType target = call.tensor("target").dtype();
  return is_floating(target) ? promote_types(own, target) : own;
}

std::int64_t reduction_of(const OpCall& call) {
  const std::int64_t reduction = call.integer("reduction");
  require(reduction >= kNone && reduction <= kSum, "there is no such reduction");
  return reduction;
}

// Classes in dim 1 (dim 0 of a lone sample), one target per sample. Weights and
// ignored targets make a mean a quotient, so samples stay whole but for
// unreduced losses.
BoundForm bind_class_loss(const OpCall& call, bool forward) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& target = call.tensor("target");
  require(self.rank() >= 1, "the input has no classes");
  const std::size_t classes = self.rank() == 1 ? 0 : 1;
  SpaceBuilder b;
  const Operand whole = b.per_dim(self.shape());
  b.block(whole.dims[classes], "targets name its elements", FactorKind::kIndexed);
  Operand samples = whole;
  samples.dims.erase(samples.dims.begin() + static_cast<std::ptrdiff_t>(classes));
  Dims shape = self.shape();
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(classes));
  const bool probabilities =
      target.shape() == self.shape() && call.base_name() == "cross_entropy_loss";
  require(probabilities || target.shape() == shape,
          "the targets do not match the samples");
  const std::int64_t reduction = reduction_of(call);
  if (reduction != kNone) {
    for (const DimFactors& dim : samples.dims) {
      b.block(dim, "the loss is reduced over it");
    }
  }
  for (const TensorMeta& meta : call.op().inputs) {
    b.input(&meta == &self       ? whole
            : &meta == &target ? (probabilities ? whole : samples)
                                 : SpaceBuilder::whole(meta.rank()));
  }
  b.output(reduction == kNone ? samples : Operand{});
  if (forward) {
    b.output(Operand{});
    for (const DimFactors& dim : samples.dims) {
      b.block(dim, "its weights are added up");
    }
  }
  return b.bound();
}

BoundForm bind_class_loss_backward(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  SpaceBuilder b;
  const Operand whole = b.per_dim(self.shape());
  for (const DimFactors& dim : whole.dims) {
    b.block(dim, "targets name its elements", FactorKind::kIndexed);
  }
  for (const TensorMeta& meta : call.op().inputs) {
    b.input(&meta == &self ? whole : SpaceBuilder::whole(meta.rank()));
  }
  b.output(whole);
  return b.bound();
}

// A pointwise function of self and target, reduced over everything.
BoundForm bind_elementwise_loss(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const TensorMeta& target = call.tensor("target");
  const std::int64_t reduction = reduction_of(call);
  Dims shape = broadcast(self.shape(), target.shape());
  for (const TensorMeta& meta : call.op().inputs) {
    shape = broadcast(shape, meta.shape());
  }
  SpaceBuilder b;
  const Operand whole = b.per_dim(shape);
  for (const TensorMeta& meta : call.op().inputs) {
    b.input(b.aligned(whole, meta.shape()));
  }
  if (reduction == kNone) {
    b.output(whole);
    return b.bound();
  }
  b.output(Operand{});
  for (const DimFactors& dim : whole.dims) {
    b.without(0, dim,
              Without::partial(reduction == kMean ? ReduceOp::kAvg
                                                  : ReduceOp::kSum));
  }
  // A mean over unequal shards is not the mean of their means.
  if (reduction == kMean) {
    for (Factor& factor : b.space.factors) factor.even = true;
  }
  return b.bound();
}

BoundForm bind_elementwise_loss_backward(const OpCall& call) {
  const TensorMeta& self = call.tensor("self");
  const std::int64_t reduction = reduction_of(call);
  const Dims shape = broadcast(self.shape(), call.tensor("target").shape());
  SpaceBuilder b;
  if (shape != self.shape()) {
    for (const TensorMeta& meta : call.op().inputs) {
      b.input(SpaceBuilder::whole(meta.rank()));
    }
    const bool keeps = call.base_name() == "binary_cross_entropy_backward";
    const Dims& made = keeps ? self.shape() : shape;
    b.output(SpaceBuilder::whole(static_cast<int>(made.size())),
             {.shape = made, .dtype = self.dtype()});
    return b.bound();
  }
  const Operand whole = b.per_dim(shape);
  for (const TensorMeta& meta : call.op().inputs) {
    b.input(b.aligned(whole, meta.shape()));
  }
  // Each rank would divide by the number of its own elements.
  if (reduction == kMean) {
    for (const DimFactors& dim : whole.dims) b.block(dim, "the loss is a mean");
  }
  b.output(whole, {.dtype = self.dtype()});
  return b.bound();
}

}  // namespace

void define_loss(Family f) {
  f.add({"cross_entropy_loss", "nll_loss", "nll_loss_nd", "nll_loss2d"},
        custom("class_loss()", [](const OpCall& call) {
          return bind_class_loss(call, false);
        }).typed(of_self));
  f.add({"nll_loss_forward", "nll_loss2d_forward"},
        custom("class_loss()", [](const OpCall& call) {
          return bind_class_loss(call, true);
        }).typed(of_self));
  f.add({"nll_loss_backward", "nll_loss2d_backward"},
        custom("class_loss_backward()", bind_class_loss_backward).typed(of_self));
  f.add({"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss",
         "binary_cross_entropy", "binary_cross_entropy_with_logits"},
        custom("loss()", bind_elementwise_loss).promoted());
  f.add({"mse_loss_backward", "smooth_l1_loss_backward", "huber_loss_backward",
         "binary_cross_entropy_backward"},
        custom("loss_backward()", bind_elementwise_loss_backward));
}

}  // namespace shardprop

// Losses of elements: a pointwise function of input and target, reduced over
// all dims.

#include "ops/forms/losses.h"
#include "ops/forms/forms.h"
#include "ops/forms/shared_form.h"
#include "ops/rules/rule_words.h"

#include <string>

namespace shardprop {
namespace {

// Checks the operands of a loss, and the threshold between its quadratic and
// its linear range.
void check_operands(const OpCall& call) {
  if (call.has("beta")) {
    require(call.op().float_arg("beta").value_or(0) >= 0, "`beta` is negative");
  }
  if (call.has("delta")) {
    require(call.op().float_arg("delta").value_or(1) > 0,
            "`delta` is not positive");
    require(is_floating(call.tensor("self").dtype()),
            "`self` is not of floats");
  }
}

// Binds a pointwise function of the operands, reduced over all dims.
BoundForm bind_elementwise_loss(const OpCall& call) {
  const LossReduction reduction = reduction_of(call);
  check_operands(call);
  const Dims shape = broadcast(call.op().inputs);
  SpaceBuilder b;
  const Operand whole = b.per_dim(shape);
  for (const TensorMeta& meta : call.op().inputs) {
    b.input(b.aligned(whole, meta.shape()));
  }
  if (reduction == LossReduction::kNone) {
    b.output(whole);
    return b.bound();
  }
  b.output(Operand{});
  for (const DimFactors& dim : whole.dims) {
    b.without(
        0, dim,
        Without::partial(reduction == LossReduction::kMean ? ReduceOp::kAvg
                                                           : ReduceOp::kSum));
  }
  // The mean of unequal shards' means is not the mean.
  if (reduction == LossReduction::kMean) {
    for (Factor& factor : b.space.factors) {
      factor.program = ProgramUse::kWhenUneven;
    }
  }
  return b.bound();
}

// If another operand is larger than `self`, the gradient has the shape of `self` if
// `keeps_self`, else the broadcast shape.
BoundForm bind_elementwise_loss_backward(const OpCall& call, bool keeps_self) {
  const TensorMeta& self = call.tensor("self");
  const LossReduction reduction = reduction_of(call);
  check_operands(call);
  const Dims shape =
      broadcast(broadcast(self.shape(), call.tensor("target").shape()),
                call.tensor("grad_output").shape());
  SpaceBuilder b;
  if (shape != self.shape()) {
    for (const TensorMeta& meta : call.op().inputs) {
      b.input(SpaceBuilder::whole(meta.rank()));
    }
    const Dims& made = keeps_self ? self.shape() : shape;
    b.output(SpaceBuilder::whole(static_cast<int>(made.size())),
             {.shape = made, .dtype = self.dtype()});
    return b.bound();
  }
  const Operand whole = b.per_dim(shape);
  for (const TensorMeta& meta : call.op().inputs) {
    b.input(b.aligned(whole, meta.shape()));
  }
  // Without a program, each rank would divide by its own number of elements,
  // not the full one.
  if (reduction == LossReduction::kMean) {
    for (const DimFactors& dim : whole.dims) b.block(dim, "the loss is a mean");
  }
  b.output(whole, {.dtype = self.dtype()});
  return b.bound();
}

}  // namespace

OpDefinition elementwise_loss(std::string_view dtype_rule) {
  OpDefinition loss = dtype_rule.empty() ? form("loss()").promoted()
                                         : form("loss()").typed(dtype_rule);
  return std::move(loss).per_rank(
      "l = upcast(itself(reduction=0))\n"
      "return cast(sum(l) / numel(l), dtype(out))");
}

OpDefinition elementwise_loss_gradient(std::string_view sum, bool keeps_self) {
  return form(keeps_self ? "loss_gradient(self)" : "loss_gradient()")
      .per_rank(
          "return cast(" + std::string(sum) + " / numel(self), dtype(out))",
          FactorKind::kBlocked)
      .linear_in("grad_output")
      // Integers wrap round before the division.
      .refine("no_integers()");
}

void words_of_losses(RuleWords& words) {
  words.form(shared_form("loss()", bind_elementwise_loss));
  for (const bool keeps_self : {false, true}) {
    words.form(
        shared_form(keeps_self ? "loss_gradient(self)" : "loss_gradient()",
                    [keeps_self](const OpCall& call) {
                      return bind_elementwise_loss_backward(call, keeps_self);
                    }));
  }
  words.check("logit_per_target()", [](const OpCall& call, const IndexSpace&) {
    require(is_floating(call.tensor("self").dtype()) &&
                call.tensor("self").shape() == call.tensor("target").shape(),
            "the logits are integers, or not one per target");
  });
  words.check("input_like_target()", [](const OpCall& call, const IndexSpace&) {
    require(call.tensor("self").dtype() == call.tensor("target").dtype() &&
                call.tensor("self").shape() == call.tensor("target").shape(),
            "input and target are of two dtypes or shapes");
  });
  words.modifier("no_integers()", [](const OpCall& call, IndexSpace& space) {
    if (is_floating(call.tensor("self").dtype())) return;
    space.linearities.clear();
    for (Factor& factor : space.factors) factor.program = ProgramUse::kNever;
  });
}

}  // namespace shardprop

// This file defines the fused steps of optimizers. They read lists of
// parameters, gradients and states. The i-th tensors of all lists are sharded
// in the same way.

#include "ops/definitions/families.h"
#include "ops/definitions/words.h"

#include <map>

namespace shardprop {
namespace {

// Elements of lists with the shape of the i-th parameter have its factors.
// Steps, rates and scales are replicated.
BoundForm bind_lists(const OpCall& call) {
  const OpSchema& op = call.op();
  SpaceBuilder b;
  std::vector<Operand> parameters;
  const std::vector<TensorMeta> own = call.tensors("self");
  for (const TensorMeta& meta : own)
    parameters.push_back(b.per_dim(meta.shape()));
  std::map<std::string, std::vector<std::pair<Operand, TensorMeta>>> lists;
  const auto& declared = op.function->arguments();
  for (std::size_t i = 0; i < declared.size(); ++i) {
    if (const auto* lone = std::get_if<TensorArg>(&op.args[i])) {
      if (lone->operand != TensorArg::kNone) {
        b.input(SpaceBuilder::whole(op.inputs[index(lone->operand)].rank()));
      }
      continue;
    }
    const auto* list = std::get_if<std::vector<TensorArg>>(&op.args[i]);
    if (list == nullptr) continue;
    for (std::size_t e = 0; e < list->size(); ++e) {
      require((*list)[e].operand != TensorArg::kNone, "a tensor is missing");
      const TensorMeta& meta = op.inputs[index((*list)[e].operand)];
      const bool alike = e < own.size() && meta.shape() == own[e].shape();
      Operand operand =
          alike ? parameters[e] : SpaceBuilder::whole(meta.rank());
      b.input(operand);
      lists[declared[i].name].emplace_back(std::move(operand), meta);
    }
  }
  // Results are called self_out, exp_avgs_out, ...
  constexpr std::string_view kOut = "_out";
  for (const ArgumentSchema& result : op.function->returns()) {
    std::string name = result.name;
    if (name.ends_with(kOut)) name.resize(name.size() - kOut.size());
    for (const auto& [operand, meta] : lists[name]) {
      b.output(operand, {.strides = meta.strides(), .dtype = meta.dtype()});
    }
  }
  // The factors of one parameter leave the results of the others unchanged.
  IndexSpace& space = b.space;
  space.seal();
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    for (std::size_t o = 0; o < space.outputs.size(); ++o) {
      if (!space.outputs[o].holds(static_cast<int>(f))) {
        space.outputs_without[o][f] = Without::same();
      }
    }
  }
  return b.bound();
}

// Divides gradients by the scale of the loss, and reports whether one of them
// is not finite. The report is a P(max), since each rank checks its own parts.
BoundForm bind_unscaled(const OpCall& call) {
  const TensorMeta& found = call.tensor("found_inf");
  const TensorMeta& scale = call.tensor("inv_scale");
  require(found.numel() == 1 && scale.numel() == 1 &&
              found.dtype() == DType::kF32 && scale.dtype() == DType::kF32,
          "found_inf and inv_scale are not numbers in f32");
  SpaceBuilder b;
  std::vector<Operand> gradients;
  for (const TensorMeta& meta : call.tensors("self")) {
    require(is_floating(meta.dtype()), "a gradient is not of floats");
    gradients.push_back(b.per_dim(meta.shape()));
    b.input(gradients.back());
  }
  b.input(SpaceBuilder::whole(found.rank()));
  b.input(SpaceBuilder::whole(scale.rank()));
  std::size_t i = 0;
  for (const TensorMeta& meta : call.tensors("self")) {
    b.output(gradients[i++],
             {.strides = meta.strides(), .dtype = meta.dtype()});
  }
  b.output(SpaceBuilder::whole(found.rank()),
           {.shape = found.shape(), .dtype = found.dtype()});
  IndexSpace& space = b.space;
  space.seal();
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    space.inputs_without[i][f] = Without::partial(ReduceOp::kMax);
    for (std::size_t o = 0; o < i; ++o) {
      if (!space.outputs[o].holds(static_cast<int>(f))) {
        space.outputs_without[o][f] = Without::same();
      }
    }
    space.outputs_without[i][f] = Without::partial(ReduceOp::kMax);
  }
  return b.bound();
}

}  // namespace

void words_of_optimizer(RuleWords& words) {
  words.form(custom("unscaled()", bind_unscaled));
  words.form(custom("lists()", bind_lists));
}

void define_optimizer(Family f) {
  f.add("_amp_foreach_non_finite_check_and_unscale", form("unscaled()"));
  f.add({"_fused_adam", "_fused_adamw", "_fused_sgd", "_fused_adagrad"},
        in_order(form("lists()")));
}

}  // namespace shardprop

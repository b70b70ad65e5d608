// The optimizer's step for one parameter, in the layout of its state, in the
// operators of torch.optim.
#include "lower/lowering.h"

#include "base/try.h"
#include "lower/broken_plan.h"

#include <utility>

namespace shardprop::lowering {
namespace {

// torch.optim.AdamW's defaults.
constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.999;
constexpr double kEpsilon = 1e-8;
constexpr double kWeightDecay = 0.01;

// Pointwise operators on tensors of one shape and layout.
class Update {
 public:
  Update(ProgramBuilder& build, std::string name, const ProgramValue& like)
      : build_(build),
        name_(std::move(name)),
        meta_(like.meta),
        layout_(like.layout) {}

  ProgramValueId op(const char* name, ProgramArguments args) {
    const ProgramValueId made = build_.value(name_ + ".u", meta_, layout_);
    build_.op(name, std::move(args), {made});
    return made;
  }
  ProgramValueId scaled(ProgramValueId value, double by) {
    return op("aten.mul.Scalar", {{"self", value}, {"other", Argument(by)}});
  }
  ProgramValueId binary(const char* name, ProgramValueId a, ProgramValueId b) {
    return op(name, {{"self", a}, {"other", b}});
  }

 private:
  ProgramBuilder& build_;
  std::string name_;
  TensorMeta meta_;
  Layout layout_;
};

// 1 - beta^step, as a tensor of no dims.
ProgramValueId bias_correction(Update& scalar, ProgramValueId step,
                               double beta) {
  const ProgramValueId power = scalar.op(
      "aten.pow.Scalar", {{"self", Argument(beta)}, {"exponent", step}});
  return scalar.op("aten.rsub.Scalar",
                   {{"self", power}, {"other", Argument(1.0)}});
}

}  // namespace

ProgramValueId Lowering::scalar_input(ProgramInputKind kind, std::string name) {
  auto [it, fresh] = scalars_.try_emplace(kind);
  if (fresh) {
    it->second = build_.input({kind, {}, {}, true}, std::move(name),
                              *TensorMeta::contiguous({}, DType::kF32),
                              Layout::replicated(plan_.mesh.ndim()));
  }
  return it->second;
}

Result<void> Lowering::add_update(const PlannedUpdate& update) {
  const std::string where = "update of " + update.parameter;
  if (!update.gradient) {
    return broken_plan(where, "it has no gradient");
  }
  SP_ASSIGN(const ProgramValueId parameter, taken(update.value, where));
  SP_ASSIGN(const ProgramValueId gradient, taken(*update.gradient, where));
  build_.stand_at(program_.nodes.size());
  const ProgramValue like = build_[parameter];
  if (update.result.tensor.layout != like.layout ||
      build_[gradient].layout != like.layout) {
    return broken_plan(where, "gradient and parameter are not laid out alike");
  }
  const bool is_adamw = update.op == "optimizer.adamw";
  if (!is_adamw && update.op != "optimizer.sgd") {
    return fail(Error{ErrorCode::kNotLowered,
                      "`" + update.op + "` is not an optimizer that is known",
                      where,
                      {},
                      "plan with --optimizer adamw, sgd or none"});
  }
  const ProgramValueId rate =
      scalar_input(ProgramInputKind::kLearningRate, "optimizer.learning_rate");
  Update make(build_, update.result.name, like);
  ProgramValueId change;
  ProgramValueId before = parameter;
  if (is_adamw) {
    const ProgramValueId step =
        scalar_input(ProgramInputKind::kOptimizerStep, "optimizer.step");
    const auto state = [&](const std::string& kind) {
      return build_.input(
          {ProgramInputKind::kOptimizerState, {}, update.parameter, true},
          "adamw." + kind + "." + update.parameter, like.meta, like.layout);
    };
    const auto after = [&](ProgramValueId value, ProgramValueId state_before) {
      for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
        if (program_.inputs[i].value != state_before) continue;
        program_.outputs.push_back({ProgramOutputKind::kUpdate, value, i});
      }
      return value;
    };
    const ProgramValueId m_before = state("exp_avg");
    const ProgramValueId v_before = state("exp_avg_sq");
    const ProgramValueId m =
        after(make.binary("aten.add.Tensor", make.scaled(m_before, kBeta1),
                          make.scaled(gradient, 1 - kBeta1)),
              m_before);
    const ProgramValueId square =
        make.binary("aten.mul.Tensor", gradient, gradient);
    const ProgramValueId v =
        after(make.binary("aten.add.Tensor", make.scaled(v_before, kBeta2),
                          make.scaled(square, 1 - kBeta2)),
              v_before);
    Update scalar(build_, update.result.name, build_[step]);
    const ProgramValueId root = scalar.op(
        "aten.sqrt.default", {{"self", bias_correction(scalar, step, kBeta2)}});
    const ProgramValueId denominator = make.op(
        "aten.add.Scalar",
        {{"self",
          make.binary("aten.div.Tensor",
                      make.op("aten.sqrt.default", {{"self", v}}), root)},
         {"other", Argument(kEpsilon)}});
    change = make.binary("aten.div.Tensor",
                         make.binary("aten.div.Tensor", m,
                                     bias_correction(scalar, step, kBeta1)),
                         denominator);
    // 1 - lr * decay
    const ProgramValueId decay = scalar.op(
        "aten.rsub.Scalar", {{"self", scalar.scaled(rate, kWeightDecay)},
                             {"other", Argument(1.0)}});
    before = make.binary("aten.mul.Tensor", parameter, decay);
  } else {
    change = gradient;
  }
  const ProgramValueId result = build_.value(
      update.result.name, like.meta, update.result.tensor.layout, parameter);
  build_.op("aten.sub.Tensor",
            {{"self", before},
             {"other", make.binary("aten.mul.Tensor", change, rate)}},
            {result});
  made_[update.result.name] = result;
  program_.nodes.push_back({update.result.name,
                            update.op,
                            update.module_path,
                            true,
                            {gradient, parameter},
                            {result}});
  return {};
}

}  // namespace shardprop::lowering

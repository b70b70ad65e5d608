// Lowers the optimizer's step for one parameter, in the layout of its state, to
// the operators of torch.optim.
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

// `Update` adds pointwise operators on tensors of one shape and layout.
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

// Returns 1 - beta^step, as a tensor without dims.
ProgramValueId bias_correction(Update& scalar, ProgramValueId step,
                               double beta) {
  const ProgramValueId power = scalar.op(
      "aten.pow.Scalar", {{"self", Argument(beta)}, {"exponent", step}});
  return scalar.op("aten.rsub.Scalar",
                   {{"self", power}, {"other", Argument(1.0)}});
}

// The parameter after the step is before - rate * change.
struct Step {
  ProgramValueId before;
  ProgramValueId change;
};

struct AdamW {
  ProgramBuilder& build;
  SpmdProgram& program;
  const PlannedUpdate& update;
  ProgramValueId rate;
  ProgramValueId step;

  // Adds a moment of the parameter and updates it by `next`.
  template <class Next>
  ProgramValueId moment(const std::string& kind, const ProgramValue& like,
                        const Next& next) const {
    const ProgramValueId before = build.input(
        {InputKind::kOptimizerState, {}, update.parameter, true},
        "adamw." + kind + "." + update.parameter, like.meta, like.layout);
    const ProgramValueId after = next(before);
    for (std::size_t i = 0; i < program.inputs.size(); ++i) {
      if (program.inputs[i].value != before) continue;
      program.outputs.push_back({OutputKind::kUpdate, after, i});
    }
    return after;
  }

  Step of(ProgramValueId parameter, ProgramValueId gradient) const {
    const ProgramValue like = build[parameter];
    Update make(build, update.result.name, like);
    Update scalar(build, update.result.name, build[step]);
    const auto mean = [&](ProgramValueId before, double beta,
                          ProgramValueId added) {
      return make.binary("aten.add.Tensor", make.scaled(before, beta),
                         make.scaled(added, 1 - beta));
    };
    const ProgramValueId m = moment(
        "exp_avg", like,
        [&](ProgramValueId before) { return mean(before, kBeta1, gradient); });
    const ProgramValueId square =
        make.binary("aten.mul.Tensor", gradient, gradient);
    const ProgramValueId v = moment(
        "exp_avg_sq", like,
        [&](ProgramValueId before) { return mean(before, kBeta2, square); });
    const ProgramValueId root = scalar.op(
        "aten.sqrt.default", {{"self", bias_correction(scalar, step, kBeta2)}});
    const ProgramValueId denominator = make.op(
        "aten.add.Scalar",
        {{"self",
          make.binary("aten.div.Tensor",
                      make.op("aten.sqrt.default", {{"self", v}}), root)},
         {"other", Argument(kEpsilon)}});
    const ProgramValueId change =
        make.binary("aten.div.Tensor",
                    make.binary("aten.div.Tensor", m,
                                bias_correction(scalar, step, kBeta1)),
                    denominator);
    // The factor is 1 - lr * decay.
    const ProgramValueId decay = scalar.op(
        "aten.rsub.Scalar", {{"self", scalar.scaled(rate, kWeightDecay)},
                             {"other", Argument(1.0)}});
    return {make.binary("aten.mul.Tensor", parameter, decay), change};
  }
};

}  // namespace

ProgramValueId Lowering::scalar_input(InputKind kind, std::string name) {
  auto [it, fresh] = scalars_.try_emplace(kind);
  if (fresh) {
    it->second = build_.input({kind, {}, {}, true}, std::move(name),
                              *TensorMeta::contiguous({}, DType::kF32),
                              Layout::replicated(plan_.mesh.ndim()));
  }
  return it->second;
}

// Lowers a program without the optimizer's step. The position of the step
// remains empty, because copies refer to positions.
Result<void> Lowering::leave_update(const PlannedUpdate& update,
                                    ProgramValueId gradient) {
  if (build_[gradient].layout != update.result.tensor.layout) {
    return broken_plan("update of " + update.parameter,
                       "gradient and state have different layouts");
  }
  made_[update.result.name] = gradient;
  program_.nodes.push_back({update.result.name,
                            update.op,
                            update.module_path,
                            true,
                            {gradient},
                            {}});
  return {};
}

Result<void> Lowering::add_update(const PlannedUpdate& update) {
  const std::string where = "update of " + update.parameter;
  if (!update.gradient) {
    return broken_plan(where, "it has no gradient");
  }
  SP_ASSIGN(const ProgramValueId gradient, taken(*update.gradient, where));
  if (!options_.optimizer_step) return leave_update(update, gradient);
  SP_ASSIGN(const ProgramValueId parameter, taken(update.value, where));
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
      scalar_input(InputKind::kLearningRate, "optimizer.learning_rate");
  Update make(build_, update.result.name, like);
  Step step{parameter, gradient};
  if (is_adamw) {
    const AdamW adamw{
        build_, program_, update, rate,
        scalar_input(InputKind::kOptimizerStep, "optimizer.step")};
    step = adamw.of(parameter, gradient);
  }
  const ProgramValueId result = build_.value(
      update.result.name, like.meta, update.result.tensor.layout, parameter);
  build_.op("aten.sub.Tensor",
            {{"self", step.before},
             {"other", make.binary("aten.mul.Tensor", step.change, rate)}},
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

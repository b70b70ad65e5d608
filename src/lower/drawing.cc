#include "lower/drawing.h"

#include "base/try.h"

#include <cmath>
#include <numbers>
#include <utility>

namespace shardprop::lowering {
Drawing::Drawing(ProgramBuilder& build, const Node& node,
                 const PlannedNode& planned,
                 const std::vector<ProgramValueId>& inputs, ProgramValueId seed)
    : build_(build),
      node_(node),
      planned_(planned),
      inputs_(inputs),
      draws_{seed, static_cast<std::int64_t>(node.drawn_by().index())},
      ops_(build, node.name + ".r", node.op.outputs[0].shape(),
           planned.outputs[0].tensor.layout) {}

// Box and Muller.
Drawing::Id Drawing::normal(DType dtype) {
  const Id log = ops_.op("aten.log.default", dtype,
                         {{"self", ops_.positive_uniform(draws_, dtype, 0)}});
  const Id radius =
      ops_.op("aten.sqrt.default", dtype,
              {{"self", ops_.scalar_op("aten.mul.Scalar", log, -2.0)}});
  const Id angle = ops_.scalar_op(
      "aten.mul.Scalar", ops_.uniform(draws_, dtype, 2), 2 * std::numbers::pi);
  return ops_.op(
      "aten.mul.Tensor", dtype,
      {{"self", radius},
       {"other", ops_.op("aten.cos.default", dtype, {{"self", angle}})}});
}

Drawing::Id Drawing::exponential(DType dtype) {
  return ops_.op(
      "aten.neg.default", dtype,
      {{"self", ops_.op("aten.log.default", dtype,
                        {{"self", ops_.positive_uniform(draws_, dtype, 0)}})}});
}

// Reduces 62 random bits modulo the size of the range. The bias against a
// uniform distribution is negligible.
Drawing::Id Drawing::integers(std::int64_t low, std::int64_t high) {
  const Id major = ops_.int_op("aten.bitwise_right_shift.Tensor_Scalar",
                               ops_.bits(draws_, 0), 2);
  const Id all = ops_.op(
      "aten.add.Tensor", DType::kI64,
      {{"self", ops_.int_op("aten.mul.Scalar", major, std::int64_t{1} << 32)},
       {"other", ops_.bits(draws_, 1)}});
  return ops_.int_op("aten.add.Scalar",
                     ops_.int_op("aten.remainder.Scalar", all, high - low),
                     low);
}

DType Drawing::drawn_in(DType dtype) {
  return is_floating(dtype) && item_size(dtype) == 8 ? DType::kF64
                                                     : DType::kF32;
}

double Drawing::number(const char* name, double fallback) const {
  if (!node_.op.has_arg(name)) return fallback;
  return node_.op.float_arg(name).value_or(fallback);
}

// Returns the value with the name and meta of the first output.
Drawing::Id Drawing::finish(Id value) {
  const PlannedResult& planned = planned_.outputs[0];
  return build_.renamed(value, planned.name, node_.op.outputs[0],
                        planned.tensor.layout);
}

Result<std::vector<ProgramValueId>> Drawing::refuse(
    const std::string& why) const {
  const bool drops = node_.op.has_arg("dropout") ||
                     node_.op.has_arg("dropout_p") ||
                     (node_.op.has_arg("p") && node_.op.has_arg("train"));
  return fail(Error{
      ErrorCode::kNotLowered,
      "`" + node_.op_name() + "` cannot be drawn element by element: " + why,
      node_.name,
      {},
      drops ? "decompose it before exporting, or turn dropout off"
            : "draw it before the program runs, and give it as an input"});
}

// Returns the input of dropout outside of training, and a mask of ones if
// `has_mask`.
std::vector<ProgramValueId> Drawing::untouched(bool has_mask) {
  std::vector<Id> out = {finish(operand(0))};
  if (!has_mask) return out;
  out.push_back(build_.value(planned_.outputs[1].name, node_.op.outputs[1],
                             planned_.outputs[1].tensor.layout));
  build_.op("aten.ones_like.default",
            {{"self", operand(0)}, {"dtype", Argument(DType::kBool)}},
            {out[1]});
  return out;
}

Result<std::vector<ProgramValueId>> Drawing::dropout() {
  const double p = number("p", 0.5);
  const bool has_mask = node_.op.outputs.size() > 1;
  const bool train = node_.op.has_arg("train")
                         ? node_.op.bool_arg("train").value_or(true)
                         : true;
  const Id self = operand(0);
  if (!train || p == 0) return untouched(has_mask);
  const DType in = drawn_in(dtype());
  const Id kept =
      ops_.op("aten.ge.Scalar", DType::kBool,
              {{"self", ops_.uniform(draws_, in, 0)}, {"other", Argument(p)}});
  const Id masked =
      ops_.op("aten.mul.Tensor", dtype(), {{"self", self}, {"other", kept}});
  const double scale = p < 1 ? 1 / (1 - p) : 0;
  std::vector<Id> out = {
      finish(ops_.scalar_op("aten.mul.Scalar", masked, scale))};
  if (has_mask) {
    out.push_back(build_.value(planned_.outputs[1].name, node_.op.outputs[1],
                               planned_.outputs[1].tensor.layout));
    build_.op("aten.alias.default", {{"self", kept}}, {out[1]});
  }
  return out;
}

// Returns operators on one number per sample and channel. The later dims have
// size 1, so they are replicated on every rank.
ElementOps Drawing::by_channel() const {
  Dims shape = node_.op.outputs[0].shape();
  for (std::size_t d = 2; d < shape.size(); ++d) shape[d] = 1;
  Layout layout = planned_.outputs[0].tensor.layout;
  for (int m = 0; m < layout.mesh_ndim(); ++m) {
    if (!layout[m].is_shard() || layout[m].dim() < 2) continue;
    layout = *layout.with(m, Placement::replicate());
  }
  return {build_, node_.name + ".r", std::move(shape), std::move(layout)};
}

// Drops elements or entire channels (`by_feature`). A dropped value becomes
// zero. With `alpha` it becomes the least value of SELU, and the result keeps
// mean and variance.
Result<std::vector<ProgramValueId>> Drawing::special_dropout(bool by_feature,
                                                             bool alpha) {
  const double p = number("p", 0.5);
  if (!node_.op.bool_arg("train").value_or(true) || p == 0) {
    return untouched(false);
  }
  const DType in = drawn_in(dtype());
  ElementOps mask = by_feature ? by_channel() : ops_;
  const Id kept = mask.cast(
      mask.op("aten.ge.Scalar", DType::kBool,
              {{"self", mask.uniform(draws_, in, 0)}, {"other", Argument(p)}}),
      in);
  constexpr double kLeast = 1.7580993408473766;
  double scale = 0;
  if (p < 1) {
    scale = alpha ? 1 / std::sqrt((kLeast * kLeast * p + 1) * (1 - p))
                  : 1 / (1 - p);
  }
  const Id scaled =
      ops_.op("aten.mul.Tensor", in,
              {{"self", operand(0)},
               {"other", mask.scalar_op("aten.mul.Scalar", kept, scale)}});
  if (!alpha) return std::vector<Id>{finish(scaled)};
  const Id dropped =
      mask.scalar_op("aten.add.Scalar",
                     mask.scalar_op("aten.mul.Scalar", kept, kLeast * scale),
                     kLeast * scale * (p - 1));
  return std::vector<Id>{finish(
      ops_.op("aten.add.Tensor", in, {{"self", scaled}, {"other", dropped}}))};
}

// Samples by the inverse of the cumulative distribution.
Drawing::Id Drawing::cauchy(DType dtype) {
  const Id centred =
      ops_.scalar_op("aten.add.Scalar", ops_.uniform(draws_, dtype, 0), -0.5);
  const Id angle = ops_.scalar_op("aten.mul.Scalar", centred, std::numbers::pi);
  const Id wide = ops_.scalar_op(
      "aten.mul.Scalar", ops_.op("aten.tan.default", dtype, {{"self", angle}}),
      number("sigma", 1));
  return ops_.scalar_op("aten.add.Scalar", wide, number("median", 0));
}

// Samples the number of trials until one succeeds: 1, 2, ...
Drawing::Id Drawing::geometric(DType dtype) {
  const double p = number("p", 0.5);
  const Id log = ops_.op("aten.log.default", dtype,
                         {{"self", ops_.positive_uniform(draws_, dtype, 0)}});
  const Id failures = ops_.op(
      "aten.floor.default", dtype,
      {{"self", ops_.scalar_op("aten.div.Scalar", log, std::log1p(-p))}});
  return ops_.scalar_op("aten.add.Scalar", failures, 1);
}

Drawing::Id Drawing::shifted(Id value) {
  if (!node_.op.has_arg("mean") && !node_.op.has_arg("std")) return value;
  const DType in = build_[value].meta.dtype();
  const auto tensor = [&](const char* name) {
    const auto operand_of =
        node_.op.has_arg(name) ? node_.op.tensor_arg(name) : std::nullopt;
    return operand_of ? inputs_[*operand_of] : Id();
  };
  const Id std = tensor("std");
  value =
      std.valid()
          ? ops_.op("aten.mul.Tensor", in, {{"self", value}, {"other", std}})
          : ops_.scalar_op("aten.mul.Scalar", value, number("std", 1));
  const Id mean = tensor("mean");
  return mean.valid()
             ? ops_.op("aten.add.Tensor", in,
                       {{"self", value}, {"other", mean}})
             : ops_.scalar_op("aten.add.Scalar", value, number("mean", 0));
}

// Returns the order of random 62-bit numbers. A sort needs all of them, so the
// result must be replicated.
Result<std::vector<ProgramValueId>> Drawing::permutation() {
  if (!planned_.outputs[0].tensor.layout.is_replicated()) {
    return refuse("its result is sharded");
  }
  const Id keys = integers(0, std::int64_t{1} << 62);
  const Id order =
      ops_.op("aten.argsort.default", DType::kI64, {{"self", keys}});
  return std::vector<Id>{finish(order)};
}

Drawing::Id Drawing::uniform(DType dtype) {
  const double from = number("from", 0);
  const Id wide =
      ops_.scalar_op("aten.mul.Scalar", ops_.uniform(draws_, dtype, 0),
                     number("to", 1) - from);
  return ops_.scalar_op("aten.add.Scalar", wide, from);
}

// The probability is a number, the operand `p`, or the first operand.
Drawing::Id Drawing::bernoulli(DType dtype) {
  ProgramArguments args = {{"self", ops_.uniform(draws_, dtype, 0)}};
  const bool has_p = node_.op.has_arg("p");
  if (has_p && !node_.op.tensor_arg("p")) {
    args.emplace_back("other", Argument(number("p", 0.5)));
    return ops_.op("aten.lt.Scalar", DType::kBool, std::move(args));
  }
  args.emplace_back("other", operand(has_p ? *node_.op.tensor_arg("p") : 0));
  return ops_.op("aten.lt.Tensor", DType::kBool, std::move(args));
}

Result<std::vector<ProgramValueId>> Drawing::whole_numbers() {
  const auto bound = [&](const char* name, std::int64_t fallback) {
    return node_.op.has_arg(name) ? node_.op.int_arg(name).value_or(fallback)
                                  : fallback;
  };
  const std::int64_t low = bound("low", 0);
  const std::int64_t high = bound("high", low);
  if (high <= low) return refuse("its range is empty");
  return std::vector<Id>{finish(integers(low, high))};
}

Result<std::vector<ProgramValueId>> Drawing::run(Distribution distribution) {
  const DType in = drawn_in(dtype());
  const auto one = [&](Id value) { return std::vector<Id>{finish(value)}; };
  switch (distribution) {
    case Distribution::kUnit:
      return one(ops_.uniform(draws_, is_floating(dtype()) ? dtype() : in, 0));
    case Distribution::kUniform:
      return one(uniform(in));
    case Distribution::kNormal:
      return one(shifted(normal(in)));
    case Distribution::kLogNormal:
      return one(
          ops_.op("aten.exp.default", in, {{"self", shifted(normal(in))}}));
    case Distribution::kExponential:
      return one(ops_.scalar_op("aten.div.Scalar", exponential(in),
                                number("lambd", 1)));
    case Distribution::kCauchy:
      return one(cauchy(in));
    case Distribution::kGeometric:
      return one(geometric(in));
    case Distribution::kIntegers:
      return whole_numbers();
    case Distribution::kBernoulli:
      return one(bernoulli(in));
    case Distribution::kPermutation:
      return permutation();
    case Distribution::kDropout:
      return dropout();
    case Distribution::kFeatureDropout:
      return special_dropout(true, false);
    case Distribution::kAlphaDropout:
      return special_dropout(false, true);
    case Distribution::kFeatureAlphaDropout:
      return special_dropout(true, true);
    case Distribution::kPoisson:
      return refuse("how many numbers it takes depends on the rate");
    case Distribution::kMultinomial:
      return refuse("what is drawn of a row depends on all that lies in it");
    case Distribution::kNotStated:
    case Distribution::kAttention:
    case Distribution::kAttentionBackward:
      break;
  }
  return refuse("its row does not say how it draws");
}

}  // namespace shardprop::lowering

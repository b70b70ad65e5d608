#include "strategy/rules/families.h"

#include <utility>

namespace shardprop {
namespace {

// Whether every value of `from` is one of `to`, so that sums may be cast term
// by term.
bool widens(DType from, DType to) {
  if (from == to) return true;
  if (is_integral(from) || from == DType::kBool) {
    return is_integral(to) && item_size(to) > item_size(from) &&
           from != DType::kBool;
  }
  return is_floating(from) && (to == DType::kF32 || to == DType::kF64) &&
         item_size(to) > item_size(from);
}

bool is_ordered(DType dtype) { return !is_complex(dtype); }

// A cast is linear when nothing is rounded, and keeps the order of numbers
// unless it wraps around (to narrower integers) or forgets the sign (to bool).
void cast_carries(const OpSchema& op, FactorMap& map) {
  const DType from = op.inputs[0].dtype();
  const DType to = op.outputs[0].dtype();
  const auto carry = [&](ReduceOp kind) {
    if (!is_defined(kind, from) || !is_defined(kind, to)) return;
    map.carries.push_back(
        {{Placement::partial(kind)}, {Placement::partial(kind)}});
  };
  if (widens(from, to)) {
    carry(ReduceOp::kSum);
    carry(ReduceOp::kAvg);
  }
  const bool monotone = is_ordered(from) && is_ordered(to) &&
                        (is_floating(to) || widens(from, to));
  if (monotone) {
    carry(ReduceOp::kMax);
    carry(ReduceOp::kMin);
  }
}

}  // namespace

void add_pointwise_rules(RuleBook& book) {
  const auto add = [&](const char* name, ShardingRule rule) {
    book.add("pointwise", name, std::move(rule));
  };

  add("aten.add.Scalar", pointwise().additive());
  add("aten.add.Tensor", pointwise().additive());
  add("aten.sub.Tensor", pointwise().additive({1, -1}));

  add("aten.div.Scalar", pointwise().linear_in("self"));
  add("aten.div.Tensor", pointwise().linear_in("self"));
  add("aten.mul.Scalar", pointwise().multilinear());
  add("aten.mul.Tensor", pointwise().multilinear());
  add("aten.neg.default", pointwise().multilinear().nonincreasing());

  add("aten.clamp.default", pointwise().nondecreasing());
  add("aten.exp.default", pointwise().nondecreasing());
  add("aten.relu.default", pointwise().nondecreasing());
  add("aten.sigmoid.default", pointwise().nondecreasing());
  add("aten.tanh.default", pointwise().nondecreasing());
  add("aten.maximum.default", pointwise().lattice(ReduceOp::kMax));
  add("aten.minimum.default", pointwise().lattice(ReduceOp::kMin));

  add("aten.alias.default", pointwise().passes().free());
  add("aten.clone.default", pointwise().passes());
  add("aten.copy.default", pointwise().passes({"src"}));
  add("aten.where.self", pointwise().passes({"self", "other"}));
  add("aten._to_copy.default", pointwise().refine("cast()", cast_carries));

  for (const char* name :
       {"aten.abs.default", "aten.bitwise_and.Tensor",
        "aten.bitwise_not.default", "aten.cos.default", "aten.eq.Scalar",
        "aten.ge.Scalar", "aten.ge.Tensor", "aten.gelu.default",
        "aten.gt.Scalar", "aten.le.Scalar", "aten.log.default",
        "aten.logical_and.default", "aten.logical_not.default",
        "aten.lt.Scalar", "aten.ne.Scalar", "aten.pow.Tensor_Scalar",
        "aten.rsqrt.default", "aten.sin.default"}) {
    add(name, pointwise());
  }

  add("aten.native_dropout.default", pointwise().random());
}

}  // namespace shardprop

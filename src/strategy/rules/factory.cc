// Tensors made from scalars, or from the shape of another tensor.

#include "strategy/rules/families.h"

#include <utility>

namespace shardprop {
namespace {

// start + step * i, for the elements that the rank holds.
LocalProgram arange_program(const LocalContext& context) {
  const OpSchema& op = context.op;
  const std::int64_t step = op.int_arg("step").value_or(1);
  RankScalar first = RankScalar::output_offset(0, 0);
  first.scale = step;
  first.constant = op.int_arg("start").value_or(0);
  LocalProgram program;
  const LocalRef index = program.op(
      "aten.arange.default", {{"end", RankScalar::output_size(0, 0)},
                              {"dtype", Argument(op.outputs[0].dtype())}});
  const LocalRef scaled = program.op(
      "aten.mul.Scalar", {{"self", index}, {"other", Argument(step)}});
  program.outputs = {
      program.op("aten.add.Scalar", {{"self", scaled}, {"other", first}})};
  return program;
}

void arange_by_program(const OpSchema& op, FactorMap& map) {
  const bool integral =
      op.int_arg("start").has_value() && op.int_arg("step").value_or(1) != 0;
  for (Factor& factor : map.factors) {
    factor.by_program = true;
    if (!integral) factor.blocked = "its start is no integer";
  }
  map.program = arange_program;
}

}  // namespace

void add_factory_rules(RuleBook& book) {
  const auto add = [&](const char* name, ShardingRule rule) {
    book.add("factory", name, std::move(rule));
  };
  add("aten.arange.start_step",
      pointwise().refine("arange()", arange_by_program));
  add("aten.empty_permuted.default", factory("size"));
  add("aten.full.default", factory("size"));
  add("aten.full_like.default", pointwise().ignores_values());
  add("aten.scalar_tensor.default", pointwise());

  // Checks of dtype and device, which shardings leave alone.
  book.add("assertion", "aten._assert_tensor_metadata.default", pointwise(),
           "accepts any layout");
}

}  // namespace shardprop

#include "strategy/rules/families.h"

#include <string>
#include <utility>

namespace shardprop {
namespace {

// A mean over unequal shards is a sum with the global divisor.
LocalProgram mean_program(const LocalContext& context) {
  const OpSchema& op = context.op;
  LocalProgram program;
  std::vector<std::pair<std::string, LocalOp::Value>> args = {
      {"self", LocalRef{-1, 0}}, {"dim", op.arg("dim")}};
  if (op.bool_arg("keepdim").value_or(false))
    args.emplace_back("keepdim", Argument(true));
  if (const auto dtype = op.dtype_arg("dtype")) {
    args.emplace_back("dtype", Argument(*dtype));
  }
  const LocalRef sum = program.op("aten.sum.dim_IntList", std::move(args));
  const auto count = static_cast<double>(op.inputs[0].numel()) /
                     static_cast<double>(op.outputs[0].numel());
  program.outputs = {program.op("aten.div.Scalar",
                                {{"self", sum}, {"other", Argument(count)}})};
  return program;
}

void mean_by_program(const OpSchema&, FactorMap& map) {
  for (std::size_t f = 0; f < map.factors.size(); ++f) {
    map.factors[f].by_program_when_uneven =
        map.outputs_without[0][f].has_value();
  }
  map.program = mean_program;
}

}  // namespace

void add_reduction_rules(RuleBook& book) {
  const auto add = [&](const char* name, ShardingRule rule) {
    book.add("reduction", name, std::move(rule));
  };
  add("aten.any.dim", reduction(ReduceOp::kBor));
  add("aten.mean.dim",
      reduction(ReduceOp::kAvg).refine("mean()", mean_by_program));
  add("aten.sum.dim_IntList", reduction(ReduceOp::kSum));
}

}  // namespace shardprop

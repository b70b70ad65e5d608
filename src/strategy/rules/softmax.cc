// Softmax over a sharded dim exchanges a maximum and a sum, not the tensor.

#include "strategy/rule_forms.h"
#include "strategy/rules/families.h"

#include <utility>

namespace shardprop {
namespace {

LocalProgram softmax_program(const LocalContext& context, bool log) {
  const OpSchema& op = context.op;
  const int dim = wrapped_dims(op, "dim", op.inputs[0].rank()).front();
  const std::int8_t factor =
      context.map.inputs[0].dims[static_cast<std::size_t>(dim)][0];
  const DimIndices mesh_dims = context.mesh_dims(factor);
  const TensorMeta& out = op.outputs[0];
  const Dims local =
      max_local_shape(context.output(0), context.mesh, out.shape());
  const std::int64_t bytes = context.max_local_output_elements(0) /
                             local[static_cast<std::size_t>(dim)] *
                             item_size(out.dtype());
  const Argument dims = std::vector<std::int64_t>{dim};
  const Argument keep = true;

  LocalProgram program;
  LocalRef x{-1, 0};
  if (op.inputs[0].dtype() != out.dtype()) {
    x = program.op("aten._to_copy.default",
                   {{"self", x}, {"dtype", Argument(out.dtype())}});
  }
  LocalRef most = program.op("aten.amax.default",
                             {{"self", x}, {"dim", dims}, {"keepdim", keep}});
  most = program.all_reduce(most, ReduceOp::kMax, mesh_dims, bytes);
  const LocalRef shifted =
      program.op("aten.sub.Tensor", {{"self", x}, {"other", most}});
  const LocalRef exps = program.op("aten.exp.default", {{"self", shifted}});
  LocalRef total =
      program.op("aten.sum.dim_IntList",
                 {{"self", exps}, {"dim", dims}, {"keepdim", keep}});
  total = program.all_reduce(total, ReduceOp::kSum, mesh_dims, bytes);
  if (log) {
    const LocalRef logs = program.op("aten.log.default", {{"self", total}});
    program.outputs = {
        program.op("aten.sub.Tensor", {{"self", shifted}, {"other", logs}})};
  } else {
    program.outputs = {
        program.op("aten.div.Tensor", {{"self", exps}, {"other", total}})};
  }
  return program;
}

ShardingRule softmax(bool log) {
  return pointwise().refine(
      log ? "log_softmax(dim)" : "softmax(dim)",
      [log](const OpSchema& op, FactorMap& map) {
        const int rank = op.inputs[0].rank();
        if (rank == 0) return;
        const int dim = wrapped_dims(op, "dim", rank).front();
        for (const std::int8_t f :
             map.inputs[0].dims[static_cast<std::size_t>(dim)]) {
          Factor& factor = map.factors[static_cast<std::size_t>(f)];
          factor.by_program = true;
          factor.nonempty = true;  // a maximum over nothing is undefined
        }
        map.program = [log](const LocalContext& context) {
          return softmax_program(context, log);
        };
      });
}

}  // namespace

void add_softmax_rules(RuleBook& book) {
  book.add("softmax", "aten._log_softmax.default", softmax(true));
  book.add("softmax", "aten._softmax.default", softmax(false));
}

}  // namespace shardprop

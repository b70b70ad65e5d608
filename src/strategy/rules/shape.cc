// Views and copies that move elements without computing.

#include "strategy/rule_forms.h"
#include "strategy/rules/families.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace shardprop {
namespace {

int wrap(std::int64_t dim, int rank) {
  return static_cast<int>(dim < 0 ? dim + rank : dim);
}

// The dims of the result are those of the input in another order.
FactorMap permuted(const OpSchema& op, const std::vector<int>& order) {
  FactorMap map;
  Operand& input = map.inputs.emplace_back();
  for (int dim = 0; dim < op.inputs[0].rank(); ++dim) {
    DimFactors factors;
    if (op.inputs[0].size(dim) != 1) {
      factors.push_back(static_cast<std::int8_t>(map.add_factor(
          op.inputs[0].size(dim), factor_letter(map.factors.size()))));
    }
    input.dims.push_back(std::move(factors));
  }
  Operand& output = map.outputs.emplace_back();
  for (const int dim : order) {
    output.dims.push_back(map.inputs[0].dims[static_cast<std::size_t>(dim)]);
  }
  return map;
}

Result<FactorMap> instantiate_permute(const OpSchema& op) {
  return permuted(op, wrapped_dims(op, "dims", op.inputs[0].rank()));
}

Result<FactorMap> instantiate_transpose(const OpSchema& op) {
  const int rank = op.inputs[0].rank();
  std::vector<int> order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  if (rank > 0) {
    std::swap(
        order[static_cast<std::size_t>(wrap(op.int_arg("dim0").value(), rank))],
        order[static_cast<std::size_t>(
            wrap(op.int_arg("dim1").value(), rank))]);
  }
  return permuted(op, order);
}

// Dims that are padded stay whole: the rank that holds an end would pad alone.
Result<FactorMap> instantiate_pad(const OpSchema& op) {
  std::vector<int> order(static_cast<std::size_t>(op.inputs[0].rank()));
  std::iota(order.begin(), order.end(), 0);
  FactorMap map = permuted(op, order);
  const auto pad = op.ints_arg("pad").value_or(std::vector<std::int64_t>{});
  for (std::size_t i = 0; i + 1 < pad.size(); i += 2) {
    if (pad[i] == 0 && pad[i + 1] == 0) continue;
    block_dim(map, map.inputs[0],
              op.inputs[0].rank() - 1 - static_cast<int>(i / 2),
              "it is padded");
  }
  return map;
}

std::vector<int> named_dims(const OpSchema& op) {
  std::vector<int> dims;
  const std::vector<std::int64_t> given = op.ints_arg("dim").value();
  dims.reserve(given.size());
  for (const std::int64_t dim : given) {
    dims.push_back(wrap(dim, op.inputs[0].rank()));
  }
  return dims;
}

// A named dim that is longer than 1 stays; its shards may not be longer.
LocalProgram squeeze_program(const LocalContext& context) {
  const OpSchema& op = context.op;
  std::vector<std::int64_t> squeezed;
  for (const int dim : named_dims(op)) {
    if (op.inputs[0].size(dim) == 1) squeezed.push_back(dim);
  }
  LocalProgram program;
  program.outputs = {program.op(
      op.name(), {{"self", LocalRef{-1, 0}}, {"dim", Argument(squeezed)}})};
  return program;
}

void squeeze_by_program(const OpSchema& op, FactorMap& map) {
  for (const int dim : named_dims(op)) {
    for (const std::int8_t f :
         map.inputs[0].dims[static_cast<std::size_t>(dim)]) {
      map.factors[static_cast<std::size_t>(f)].by_program = true;
    }
  }
  map.program = squeeze_program;
}

}  // namespace

void add_shape_rules(RuleBook& book) {
  const auto add = [&](const char* name, ShardingRule rule) {
    book.add("shape", name, std::move(rule));
  };
  add("aten.reshape.default", view("shape"));
  add("aten.squeeze.dims", view().refine("squeeze(dim)", squeeze_by_program));
  add("aten.unsqueeze.default", view());
  add("aten.view.default", view("size"));
  add("aten.expand.default", pointwise().passes().local_shape("size").free());
  add("aten.permute.default",
      custom("permute(dims)", instantiate_permute).passes().free());
  add("aten.transpose.int",
      custom("permute(dim0,dim1)", instantiate_transpose).passes().free());

  add("aten.cat.default", along("dim").passes({"tensors"}));
  add("aten.constant_pad_nd.default", custom("pad(pad)", instantiate_pad));
  add("aten.select.int", along("dim").passes().free());
  add("aten.slice.Tensor", along("dim").passes().free());
  add("aten.slice_scatter.default", along("dim").passes({"self", "src"}));
  add("aten.split_with_sizes.default", along("dim").passes().free());
  add("aten.topk.default", along("dim"));
  add("aten.unbind.int", along("dim").passes().free());
}

}  // namespace shardprop

// The form of operators that treat the elements of some dims alike and are
// otherwise unknown.

#include "base/quantities.h"
#include "ops/forms/forms.h"

#include <shardprop/ops/rule_text.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

// Returns `dim` counted from the front; nullopt if the tensor lacks it.
std::optional<int> dim_of(const TensorMeta& meta, int dim) {
  if (dim >= meta.rank() || dim < -meta.rank()) return std::nullopt;
  return wrap_dim(dim, meta.rank());
}

// Returns the size of the batch dim. The first tensor that has the dim and
// shares its size with a result determines it. A predicate, a counter or a
// weight may come before that tensor.
std::int64_t batch_size(const OpSchema& op, int dim) {
  std::optional<std::int64_t> first;
  for (const TensorMeta& input : op.inputs) {
    const auto at = dim_of(input, dim);
    if (!at) continue;
    const std::int64_t size = input.size(*at);
    if (!first) first = size;
    for (const TensorMeta& output : op.outputs) {
      const auto there = dim_of(output, dim);
      if (there && output.size(*there) == size) return size;
    }
  }
  require(first.has_value(),
          [dim] { return "no tensor has a dim " + std::to_string(dim); });
  return *first;
}

BoundForm bind_batch(const OpCall& call, const std::vector<int>& dims) {
  SpaceBuilder b;
  std::vector<std::pair<int, DimFactors>> shared;
  for (const int dim : dims) {
    shared.emplace_back(dim, b.dim(batch_size(call.op(), dim)));
  }
  const auto operand = [&](const TensorMeta& meta) {
    Operand out = SpaceBuilder::whole(meta.rank());
    for (const auto& [dim, factors] : shared) {
      const auto at = dim_of(meta, dim);
      if (at && meta.size(*at) == b.space.size(factors)) {
        out.dims[index(*at)] = factors;
      }
    }
    return out;
  };
  for (const TensorMeta& meta : call.op().inputs) b.input(operand(meta));
  for (const std::int32_t slot : call.op().output_slots) {
    if (slot == OpSchema::kNotProduced) {
      b.not_produced();
      continue;
    }
    const TensorMeta& meta = call.op().outputs[index(slot)];
    b.output(operand(meta), {.shape = meta.shape(),
                             .strides = meta.strides(),
                             .dtype = meta.dtype()});
  }
  return b.bound();
}

}  // namespace

OpDefinition batch(std::vector<int> dims) {
  std::string name = "batch(";
  for (const int dim : dims) {
    if (name.back() != '(') name += ',';
    name += std::to_string(dim);
  }
  return custom(name + ")", [dims = std::move(dims)](const OpCall& call) {
    return bind_batch(call, dims);
  });
}

}  // namespace shardprop

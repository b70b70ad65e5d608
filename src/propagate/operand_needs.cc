#include "propagate/operand_needs.h"

#include "base/index.h"

#include <algorithm>

namespace shardprop {
namespace {

Placement need_of_factor(const IndexSpace& space, std::size_t f,
                         std::size_t i) {
  const auto& dims = space.inputs[i].dims;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (std::find(dims[d].begin(), dims[d].end(), static_cast<FactorId>(f)) !=
        dims[d].end()) {
      return Placement::shard(static_cast<int>(d));
    }
  }
  for (const JoinedDim& joined : space.inputs[i].joined) {
    if (index(joined.factor) == f) return Placement::shard(joined.dim);
  }
  const Without without = space.inputs_without[i][f];
  return without.is_partial() ? Placement::partial(without.reduce_op())
                              : Placement::replicate();
}

// P(sum) and P(avg) convert into each other.
ReduceOp kind(ReduceOp op) {
  return op == ReduceOp::kAvg ? ReduceOp::kSum : op;
}

}  // namespace

bool is_fed(const Linearity& linearity, std::span<const Layout> given) {
  bool takes_partials = false;
  for (std::size_t i = 0; i < linearity.inputs.size(); ++i) {
    if (!linearity.inputs[i]) continue;
    takes_partials = true;
    for (const Placement placement : given[i].placements()) {
      if (placement.is_partial() &&
          kind(placement.reduce_op()) == kind(*linearity.inputs[i])) {
        return true;
      }
    }
  }
  return !takes_partials;
}

OperandNeeds::OperandNeeds(const IndexSpace& space,
                           std::span<const Layout> given, bool in_mesh_order)
    : inputs_(space.inputs.size()) {
  const std::size_t factors = space.factors.size();
  const std::size_t count = factors + space.linearities.size();
  needs_.resize(count * inputs_);
  fed_.assign(count, true);
  exact_.assign(inputs_, in_mesh_order);
  for (std::size_t i = 0; i < inputs_; ++i) {
    for (const DimFactors& dim : space.inputs[i].dims) {
      if (dim.size() > 1) exact_[i] = false;
    }
    for (std::size_t f = 0; f < factors; ++f) {
      const Placement need = need_of_factor(space, f, i);
      needs_[f * inputs_ + i] = need;
      if (need.is_partial() && need.reduce_op() == ReduceOp::kAvg) {
        exact_[i] = false;
      }
    }
  }
  for (std::size_t c = 0; c < space.linearities.size(); ++c) {
    const Linearity& linearity = space.linearities[c];
    fed_[factors + c] = is_fed(linearity, given);
    for (std::size_t i = 0; i < inputs_; ++i) {
      if (!linearity.inputs[i]) continue;
      needs_[(factors + c) * inputs_ + i] =
          Placement::partial(*linearity.inputs[i]);
    }
  }
}

std::vector<Placement> OperandNeeds::partials(std::size_t input) const {
  std::vector<Placement> out;
  for (std::size_t c = 0; c < fed_.size(); ++c) {
    const Placement need = needs_[c * inputs_ + input];
    if (fed_[c] && need.is_partial() &&
        std::find(out.begin(), out.end(), need) == out.end()) {
      out.push_back(need);
    }
  }
  return out;
}

}  // namespace shardprop

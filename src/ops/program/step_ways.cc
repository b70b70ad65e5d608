#include "ops/program/step_ways.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

namespace shardprop {
namespace {

// Returns whether any operand has the factor. A factor of results alone, such as a
// new dim of expand(), gives no operand a shard.
bool is_read(const IndexSpace& space, int factor) {
  return std::any_of(
      space.inputs.begin(), space.inputs.end(),
      [&](const Operand& operand) { return operand.holds(factor); });
}

// Returns the way that shards the factor; nullopt if ranks cannot run the operator
// on their parts of it.
std::optional<StepWay> way_of(const IndexSpace& space, int factor) {
  const auto f = static_cast<std::size_t>(factor);
  const Factor& own = space.factors[f];
  // The elements of a random operator depend on their global positions.
  if (own.kind != FactorKind::kParallel || !own.joins.empty() ||
      own.program == ProgramUse::kWhenSharded || space.is_random ||
      !is_read(space, factor)) {
    return std::nullopt;
  }
  StepWay way;
  way.factor = factor;
  for (std::size_t i = 0; i < space.inputs.size(); ++i) {
    if (!is_one_state(space.inputs[i], factor)) return std::nullopt;
    way.inputs.push_back(
        state_of(space.inputs[i], factor, space.inputs_without[i][f]));
  }
  for (std::size_t o = 0; o < space.outputs.size(); ++o) {
    const Without without = space.outputs_without[o][f];
    if (!is_one_state(space.outputs[o], factor) ||
        (!space.outputs[o].holds(factor) && without.is_forbidden())) {
      return std::nullopt;
    }
    way.outputs.push_back(state_of(space.outputs[o], factor, without));
  }
  return way;
}

// Returns whether the way reads one value in two states.
bool splits_a_value(std::span<const SteppedOperand> operands,
                    const StepWay& way) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (operands[i].ref == operands[j].ref &&
          way.inputs[i] != way.inputs[j]) {
        return true;
      }
    }
  }
  return false;
}

// Returns the bytes of the operands that the way reduces; nullopt if it does not
// accept them.
std::optional<std::int64_t> reduced_bytes(
    std::span<const SteppedOperand> operands, const StepWay& way) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const StepState state = operands[i].state;
    if (state == way.inputs[i]) continue;
    if (!state.is_partial() || way.inputs[i].is_partial() ||
        way.inputs[i].is_shard()) {
      return std::nullopt;
    }
    bytes += operands[i].bytes;
  }
  return bytes;
}

}  // namespace

StepState state_of(const Operand& operand, int factor, Without without) {
  for (std::size_t dim = 0; dim < operand.dims.size(); ++dim) {
    const DimFactors& factors = operand.dims[dim];
    if (!factors.empty() && factors[0] == factor) {
      return StepState::shard(static_cast<int>(dim));
    }
  }
  return without.is_partial() ? StepState::partial(without.reduce_op())
                              : StepState::same();
}

bool is_one_state(const Operand& operand, int factor) {
  if (!operand.holds(factor)) return true;
  // A diagonal, with the factor in two dims, has no state either.
  std::size_t major = 0;
  for (const DimFactors& dim : operand.dims) {
    for (std::size_t k = 0; k < dim.size(); ++k) {
      if (dim[k] != factor) continue;
      if (k > 0) return false;
      ++major;
    }
  }
  return major == 1;
}

std::vector<StepWay> ways_of(const IndexSpace& space) {
  std::vector<StepWay> ways;
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    if (auto way = way_of(space, static_cast<int>(f))) {
      ways.push_back(*std::move(way));
    }
  }
  for (const Linearity& linearity : space.linearities) {
    StepWay way;
    for (const auto& op : linearity.inputs) {
      way.inputs.push_back(op ? StepState::partial(*op) : StepState::same());
    }
    for (const auto& op : linearity.outputs) {
      way.outputs.push_back(op ? StepState::partial(*op) : StepState::same());
    }
    ways.push_back(std::move(way));
  }
  ways.push_back({StepWay::kNoFactor,
                  InlineVector<StepState, 4>(space.inputs.size()),
                  InlineVector<StepState, 4>(space.outputs.size())});
  return ways;
}

const StepWay* cheapest_way(const std::vector<StepWay>& ways,
                            std::span<const SteppedOperand> operands) {
  const StepWay* best = nullptr;
  std::int64_t least = 0;
  for (const StepWay& way : ways) {
    if (splits_a_value(operands, way)) continue;
    const auto bytes = reduced_bytes(operands, way);
    if (!bytes || (best != nullptr && *bytes >= least)) continue;
    best = &way;
    least = *bytes;
  }
  return best;
}

}  // namespace shardprop

#include "ops/forms/space_builder.h"

#include <utility>

namespace shardprop {

DimFactors dim_of(const std::vector<Operand>& operands, std::size_t i,
                  std::size_t d) {
  require(i < operands.size() && d < operands[i].dims.size(),
          "a modifier of the rule does not fit the rank of the operands");
  return operands[i].dims[d];
}

FactorId SpaceBuilder::factor(std::int64_t size, char letter) {
  constexpr std::size_t kMost = 32000;  // below the maximum of a FactorId
  require(space.factors.size() < kMost, "dims of too many sizes");
  if (letter == 0) {
    letter =
        static_cast<char>('a' + static_cast<int>(space.factors.size()) % 26);
  }
  return static_cast<FactorId>(space.add_factor(size, letter));
}

DimFactors SpaceBuilder::dim(std::int64_t size, char letter) {
  if (size == 1) return {};
  return {factor(size, letter)};
}

DimFactors SpaceBuilder::blocked(std::int64_t size, std::string reason,
                                 FactorKind kind) {
  DimFactors out = dim(size);
  block(out, std::move(reason), kind);
  return out;
}

Operand SpaceBuilder::per_dim(const Dims& shape) {
  Operand operand;
  for (const std::int64_t size : shape) operand.dims.push_back(dim(size));
  return operand;
}

Operand SpaceBuilder::aligned(const Operand& whole, const Dims& shape) const {
  Operand operand;
  operand.dims.resize(shape.size());
  for (std::size_t back = 1; back <= shape.size(); ++back) {
    if (back > whole.dims.size()) break;
    const DimFactors& factors = whole.dims[whole.dims.size() - back];
    const std::size_t dim = shape.size() - back;
    if (space.size(factors) == shape[dim]) operand.dims[dim] = factors;
  }
  return operand;
}

Operand SpaceBuilder::whole(int rank) {
  Operand operand;
  operand.dims.resize(index(rank));
  return operand;
}

void SpaceBuilder::block(const DimFactors& dim, std::string reason,
                         FactorKind kind) {
  for (const FactorId id : dim) {
    space.factor(id).kind = kind;
    space.factor(id).reason = reason;
  }
}

void SpaceBuilder::output(Operand operand, BoundResult result) {
  require(std::cmp_less(results_.size(), kMostResults), "too many results");
  space.outputs.push_back(std::move(operand));
  results_.emplace_back(std::move(result));
}

void SpaceBuilder::without(int output, const DimFactors& factors,
                           Without what) {
  space.seal();
  for (const FactorId id : factors) {
    space.outputs_without[index(output)][index(id)] = what;
  }
}

void SpaceBuilder::has_nothing(std::size_t output) {
  space.seal();
  for (Without& without : space.outputs_without[output]) {
    without = Without::same();
  }
}

BoundForm SpaceBuilder::bound() {
  space.seal();
  return {std::move(space), std::move(results_)};
}

}  // namespace shardprop

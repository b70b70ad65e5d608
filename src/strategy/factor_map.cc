#include <shardprop/strategy/factor_map.h>

#include <algorithm>

namespace shardprop {

bool Operand::holds(int factor) const {
  return std::any_of(dims.begin(), dims.end(), [&](const DimFactors& dim) {
    return std::find(dim.begin(), dim.end(), factor) != dim.end();
  });
}

int FactorMap::add_factor(std::int64_t size, char letter) {
  Factor factor;
  factor.size = size;
  factor.letter = letter;
  factors.push_back(std::move(factor));
  return static_cast<int>(factors.size()) - 1;
}

void FactorMap::seal() {
  inputs_without.resize(inputs.size());
  for (auto& row : inputs_without) row.resize(factors.size());
  outputs_without.resize(outputs.size());
  for (auto& row : outputs_without) row.resize(factors.size());
}

}  // namespace shardprop

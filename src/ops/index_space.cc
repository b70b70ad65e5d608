#include <shardprop/ops/index_space.h>

#include <algorithm>

namespace shardprop {

std::string_view to_string(FactorKind kind) {
  switch (kind) {
    case FactorKind::kParallel:
      return "parallel";
    case FactorKind::kBlocked:
      return "blocked";
    case FactorKind::kWindowed:
      return "windowed";
    case FactorKind::kIndexed:
      return "indexed";
    case FactorKind::kSegmented:
      return "segmented";
    case FactorKind::kScanned:
      return "scanned";
  }
  return "parallel";
}

bool Operand::holds(int factor) const {
  return std::any_of(dims.begin(), dims.end(), [&](const DimFactors& dim) {
    return std::find(dim.begin(), dim.end(), factor) != dim.end();
  });
}

int IndexSpace::add_factor(std::int64_t size, char letter) {
  if (factors.size() >= 32000) {
    throw InternalError("an index space of more than 32,000 factors");
  }
  Factor factor;
  factor.size = size;
  factor.letter = letter;
  factors.push_back(std::move(factor));
  return static_cast<int>(factors.size()) - 1;
}

void IndexSpace::seal() {
  inputs_without.resize(inputs.size());
  for (auto& row : inputs_without) {
    row.resize(factors.size(), Without::same());
  }
  outputs_without.resize(outputs.size());
  for (auto& row : outputs_without) {
    row.resize(factors.size(), Without::forbidden());
  }
}

std::int64_t IndexSpace::size(const DimFactors& dim) const {
  std::int64_t size = 1;
  for (const FactorId id : dim) size *= factor(id).size;
  return size;
}

}  // namespace shardprop

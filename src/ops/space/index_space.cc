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
  return std::any_of(dims.begin(), dims.end(),
                     [&](const DimFactors& dim) {
                       return std::find(dim.begin(), dim.end(), factor) !=
                              dim.end();
                     }) ||
         std::any_of(joined.begin(), joined.end(), [&](const JoinedDim& each) {
           return each.factor == factor;
         });
}

std::optional<FactorId> Operand::joined_factor(int dim) const {
  for (const JoinedDim& each : joined) {
    if (each.dim == dim) return each.factor;
  }
  return std::nullopt;
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

namespace {

void find_joined(const std::vector<Factor>& factors,
                 std::vector<Operand>& operands) {
  for (std::size_t f = 0; f < factors.size(); ++f) {
    if (factors[f].joins.empty()) continue;
    for (Operand& operand : operands) {
      if (operand.holds(static_cast<int>(f))) continue;
      for (std::size_t d = 0; d < operand.dims.size(); ++d) {
        if (operand.dims[d] != factors[f].joins) continue;
        operand.joined.push_back(
            {static_cast<FactorId>(f), static_cast<int>(d)});
      }
    }
  }
}

}  // namespace

void IndexSpace::seal() {
  find_joined(factors, inputs);
  find_joined(factors, outputs);
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

#include "graph/analysis/dim_trace.h"

#include "base/index.h"

namespace shardprop {

std::optional<FactorTrace> factor_at(const IndexSpace& space,
                                     const Operand& operand,
                                     const DimTrace& trace) {
  const auto dim = index(trace.dim);
  if (dim >= operand.dims.size()) return std::nullopt;
  std::int64_t before = 1;
  for (const FactorId factor : operand.dims[dim]) {
    const std::int64_t size = space.factor(factor).size;
    // A factor of size 1 cannot be sharded.
    if (size > 1 && trace.outer < before * size) {
      if (trace.outer % before != 0) return std::nullopt;
      return FactorTrace{factor, trace.outer / before};
    }
    before *= size;
  }
  return std::nullopt;
}

std::optional<DimTrace> dim_at(const IndexSpace& space, const Operand& operand,
                               const FactorTrace& trace) {
  for (std::size_t dim = 0; dim < operand.dims.size(); ++dim) {
    std::int64_t before = 1;
    for (const FactorId factor : operand.dims[dim]) {
      if (factor == trace.factor) {
        return DimTrace{static_cast<int>(dim), before * trace.outer};
      }
      before *= space.factor(factor).size;
    }
  }
  return std::nullopt;
}

}  // namespace shardprop

// Following a dim of a tensor through operators: where it goes, as a factor of
// the index space between.
//
//   view f32[8,2048,16] -> f32[16384,16]    dim 1 is behind 8 in dim 0
//   trace {1, 1} of the input  ->  factor b, whole  ->  {0, 8} of the output
#pragma once

#include <shardprop/ops/index_space.h>

#include <cstdint>
#include <optional>

namespace shardprop {

// What lies in `dim` behind `outer` elements: 1, the dim's own outermost part,
// which is what cutting the dim cuts.
struct DimTrace {
  int dim = 0;
  std::int64_t outer = 1;
  bool is_outermost() const { return outer == 1; }
  friend bool operator==(const DimTrace&, const DimTrace&) = default;
};

// The same as a factor; `outer` as above, within the factor.
struct FactorTrace {
  FactorId factor = 0;
  std::int64_t outer = 1;
  bool is_outermost() const { return outer == 1; }
  friend bool operator==(const FactorTrace&, const FactorTrace&) = default;
};

std::optional<FactorTrace> factor_at(const IndexSpace& space,
                                     const Operand& operand,
                                     const DimTrace& trace);
std::optional<DimTrace> dim_at(const IndexSpace& space, const Operand& operand,
                               const FactorTrace& trace);

}  // namespace shardprop

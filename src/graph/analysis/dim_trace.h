// Functions that follow a dim of a tensor through operators. They map a dim of
// an operand to a factor of the index space, and a factor to a dim of another
// operand.
//
//   view f32[8,2048,16] -> f32[16384,16]    dim 1 comes after 8 in dim 0
//   trace {1, 1} of the input  ->  factor b, outer 1  ->  {0, 8} of the output
#pragma once

#include <shardprop/ops/index_space.h>

#include <cstdint>
#include <optional>

namespace shardprop {

// DimTrace names a part of `dim`. `outer` is the product of the sizes of the
// factors before the part within `dim`. The outermost part has outer 1: it is
// the part that Shard(dim) splits.
struct DimTrace {
  int dim = 0;
  std::int64_t outer = 1;
  bool is_outermost() const { return outer == 1; }
  friend bool operator==(const DimTrace&, const DimTrace&) = default;
};

// FactorTrace names a part of a factor. `outer` is the product of the sizes
// before the part within the factor.
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

// `DimFactors` lists the factors of an index space (index_space.h) that form a
// tensor dim.
#pragma once

#include <shardprop/base/inline_vector.h>

#include <cstdint>

namespace shardprop {

using FactorId = std::int16_t;

// Factors are in order from major to minor.
using DimFactors = InlineVector<FactorId, 4>;

}  // namespace shardprop

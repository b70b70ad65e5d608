// The factors of an index space (index_space.h) that a tensor dim is made of.
#pragma once

#include <shardprop/base/inline_vector.h>

#include <cstdint>

namespace shardprop {

using FactorId = std::int16_t;

// Major first.
using DimFactors = InlineVector<FactorId, 4>;

}  // namespace shardprop

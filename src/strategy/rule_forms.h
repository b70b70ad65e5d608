// What the forms of a rule (einsum, pointwise, reduction, view) share.
#pragma once

#include <shardprop/ops/op_schema.h>
#include <shardprop/strategy/factor_map.h>

#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

// The dims named by an integer or list argument, negatives wrapped; all dims
// when it is absent or empty.
std::vector<int> wrapped_dims(const OpSchema& op, std::string_view argument,
                              int rank);

// No mesh dim may be given to the factors of that dim.
void block_dim(FactorMap& map, const Operand& operand, int dim,
               const std::string& reason);

// Letters for factors that have none of their own: a, b, c, …
inline char factor_letter(std::size_t i) {
  return static_cast<char>('a' + static_cast<int>(i % 26));
}

}  // namespace shardprop

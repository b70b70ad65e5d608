// Derives the values that the inputs of a graph may have, from the domains that
// operator definitions require of their arguments.
#pragma once

#include <shardprop/graph/graph.h>
#include <shardprop/ops/op_library.h>

#include <cstdint>
#include <vector>

namespace shardprop::verification {

struct InputDomain {
  // The bound of integers: the size of the smallest table that they index.
  std::int64_t below = 0;
  bool positive = false;  // a logarithm or a root follows
  bool nonzero = false;   // an integer is divided by it
};

// By graph input.
std::vector<InputDomain> input_domains(const Graph& graph,
                                       const OpLibrary& library);

}  // namespace shardprop::verification

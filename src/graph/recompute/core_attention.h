// core_attention() finds the operators that turn queries, keys and values into the
// result of attention, as Megatron-LM's selective recomputation runs them again.
//
//   scaled_dot_product_attention(q, k, v)                      that operator
//   bmm(q, k^T) -> mul -> add(mask) -> softmax -> bmm(., v)    all but the last bmm
//
// The softmax of a router is none of attention: its matmul reads a parameter.
#pragma once

#include "graph/recompute/node_facts.h"

#include <cstdint>
#include <span>
#include <vector>

namespace shardprop {

// Returns, by node, whether it belongs to core attention. `regions` is the block of
// each node.
std::vector<bool> core_attention(const Graph& graph, const NodeFacts& facts,
                                 std::span<const std::int32_t> regions);

}  // namespace shardprop

// `FlatMove` is a redistribution whose tensor can share one flat buffer with
// other tensors, so that one collective moves all of them.
//
//   all_gather      [8,4] S(0) -> R    each rank's [4,4] is 16 elements of the
//                                      buffer of that rank
//   reduce_scatter  [4,8] P -> S(1)    the buffer has [4,4] for each rank
//   all_reduce      [4,8] P -> R
//
// A reduce_scatter may precede an all_reduce, as in a hybrid shard.
#pragma once

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/placement/tensor_meta.h>
#include <shardprop/redistribute/redistribute_plan.h>

#include <cstdint>
#include <optional>
#include <span>

namespace shardprop {

struct FlatMove {
  // The tensor dim of the first collective, if it gathers or scatters.
  std::optional<int> tensor_dim;
  std::int64_t ranks = 1;  // of a group of the first collective
  // The local sizes before and after the steps, which all ranks share.
  Dims source;
  Dims result;
};

// Returns the flat move of these steps. It is empty in each of these cases:
// 1. The steps are others than those above, or reduce by another op than sum.
// 2. A shard is uneven, strided or not in default order.
// 3. Another mesh dim shards the tensor dim that is gathered or scattered.
std::optional<FlatMove> flat_move(const DeviceMesh& mesh,
                                  const TensorMeta& meta,
                                  std::span<const RedistributeStep> steps);

// Returns whether both collectives may move one buffer: they have the same kind,
// groups, reduction and dtype.
bool share_buffer(const CollectiveStep& a, const CollectiveStep& b);

}  // namespace shardprop

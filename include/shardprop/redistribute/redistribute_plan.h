// `RedistributePlan` is the list of collectives that turn one TensorSpec into
// another, with the bytes, time and memory of each.
//
//   bf16[4096,4096] on dp=2,tp=4:  S(0),R -> R,S(1)
//
//     S(0),R
//       | slice       tp      0 B                0 us
//     S(0),S(1)
//       | all_gather  dp      4 MiB sent       ... us
//     R,S(1)
#pragma once

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/placement/layout.h>
#include <shardprop/redistribute/collective_step.h>

#include <cstdint>
#include <string>
#include <vector>

namespace shardprop {

// `RedistributeStep` is one collective of a redistribution. `src` and `dst`
// define its effect; they differ in `mesh_dims` only:
//
//   all_gather       S -> R, of the innermost shards of their tensor dims
//   reduce_scatter   P -> S, which becomes the innermost shard
//   all_reduce       P -> R
//   all_to_all       S -> S; every rank sends to several
//   permute          S -> S; every rank's shard goes to one rank in full
//   slice            local: R -> S; P(sum) <-> P(avg), scaled by the group's
//                    size; R -> P, in which ranks other than the first of a
//                    group take the neutral element if the op needs it
//
// Mesh dims of size 1 change at no cost in the first step.
struct RedistributeStep : CollectiveStep {
  Layout src;
  Layout dst;
  // Maximum over ranks of the plan's source, the input, the output and staging
  // together.
  std::int64_t peak_bytes = 0;

  friend bool operator==(const RedistributeStep&,
                         const RedistributeStep&) = default;
};

struct RedistributePlan {
  std::vector<RedistributeStep> steps;  // empty: none is needed
  std::int64_t nanoseconds = 0;
  std::int64_t bytes_per_rank = 0;
  // This is at least the size of source and target together.
  std::int64_t peak_bytes = 0;

  friend bool operator==(const RedistributePlan&,
                         const RedistributePlan&) = default;
};

// Prints the path as above, with one line per step and a total.
std::string to_string(const RedistributePlan& plan, const DeviceMesh& mesh);

}  // namespace shardprop

// RedistributePlan: the collectives that turn one TensorSpec into another, in
// order, with what each sends, takes and holds.
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

// A collective of a redistribution. What it does is said by `src` and `dst`,
// which differ in `mesh_dims` only:
//
//   all_gather       S -> R, the last cuts of their tensor dims
//   reduce_scatter   P -> S, cutting last
//   all_reduce       P -> R
//   all_to_all       S -> S, every rank sending to several
//   permute          S -> S, every rank's shard going whole to one rank
//   slice            local: R -> S, R -> P (ranks other than the first of a
//                    group take the neutral element where the op has one that
//                    matters), P(sum) <-> P(avg) (scaled by the group's size)
//
// Mesh dims of size 1 change for free, inside whatever step comes first.
struct RedistributeStep : CollectiveStep {
  Layout src;
  Layout dst;
  // Source of the plan, input, output and staging together, largest rank.
  std::int64_t peak_bytes = 0;

  friend bool operator==(const RedistributeStep&,
                         const RedistributeStep&) = default;
};

struct RedistributePlan {
  std::vector<RedistributeStep> steps;  // empty: nothing to do
  std::int64_t nanoseconds = 0;
  std::int64_t bytes_per_rank = 0;
  // At least what source and target take together.
  std::int64_t peak_bytes = 0;

  friend bool operator==(const RedistributePlan&,
                         const RedistributePlan&) = default;
};

// The path, drawn as above, one line a step and a total.
std::string to_string(const RedistributePlan& plan, const DeviceMesh& mesh);

}  // namespace shardprop

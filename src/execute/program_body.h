// The content of a RedistributeProgram: a list of steps.
#pragma once

#include "execute/region_copy.h"

#include <shardprop/collective/group.h>
#include <shardprop/execute/redistribute_program.h>
#include <shardprop/mesh/collective_kind.h>
#include <shardprop/placement/placement.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace execute {

// PeerCopies is one message: the index of the peer in the group, and the copies
// between the message and this rank's tensor.
struct PeerCopies {
  std::int64_t peer = 0;
  RegionCopies copies;
};

struct MoveStep {
  CollectiveKind kind = CollectiveKind::kSlice;
  std::optional<Group> group;  // empty: local
  bool takes_part = true;      // else a step of other ranks only
  Dims shape;                  // of the local tensor behind the step
  bool padded = false;         // an exchange counted in equal messages

  std::int64_t index = 0;  // of this rank in the group

  // Of reductions.
  ReduceOp op = ReduceOp::kSum;
  DType reduce_dtype = DType::kF32;
  // The factor of terms (in a slice) or results.
  double scale = 1;
  // True if this rank holds the neutral element of the op instead of values.
  bool neutral = false;

  // The messages of exchanges and sends. all_gather: sends[0] goes to every
  // rank. reduce_scatter: sends[r] is this rank's term of the result of rank r.
  std::vector<PeerCopies> sends;
  std::vector<PeerCopies> receives;

  // Set if the shards of an all_gather are parts of one dim of the result: the
  // dim, and the part of each rank of the group. A rank then sends its entire
  // local tensor.
  std::optional<int> along;
  std::vector<Interval> parts;

  // True if the step uses a buffer, because a shard is not a single box of the
  // tensor or because terms are cast. The buffer has chunks[r] elements for
  // rank r of the group, concatenated. `local` packs (reduce_scatter) or
  // unpacks (all_gather) it.
  bool staged = false;
  std::vector<std::int64_t> chunks;

  // Copies within the rank: of a slice, or of sends between meshes.
  RegionCopies local;
  // The first element of a slice that is one box of the tensor before the step.
  std::optional<Dims> slice_start;

  std::string where;
};

}  // namespace execute

struct RedistributeProgram::Body {
  std::int64_t rank = 0;
  DType dtype = DType::kF32;
  std::optional<Dims> source_shape;
  std::optional<Dims> result_shape;
  std::vector<execute::MoveStep> steps;
};

}  // namespace shardprop

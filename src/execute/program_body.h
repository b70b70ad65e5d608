// The inside of a RedistributeProgram: a list of steps.
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
  // Terms (of a slice) or results are multiplied by it.
  double scale = 1;
  // A rank that holds the op's neutral element, not values.
  bool neutral = false;

  // Messages, of exchanges and sends. all_gather: sends[0] is what goes to
  // everyone. reduce_scatter: sends[r] is my term of what r gets.
  std::vector<PeerCopies> sends;
  std::vector<PeerCopies> receives;

  // Of an all_gather whose shards are parts of one dim of the result: that dim,
  // and the part of each rank of the group; what is sent is all a rank holds.
  std::optional<int> along;
  std::vector<Interval> parts;

  // Shards that are no single box of the tensor, and terms that are cast, go
  // through a buffer: chunks[r] elements for rank r of the group, one behind
  // the other. `local` packs (reduce_scatter) or unpacks (all_gather) it.
  bool staged = false;
  std::vector<std::int64_t> chunks;

  // What stays with the rank: of a slice, of sends between meshes.
  RegionCopies local;
  // Where a slice is one box of the tensor before: its first element.
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

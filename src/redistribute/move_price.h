// MovePricer computes the cost of one move: collective, time, payload and
// memory. It uses the padded sizes of the largest shard before and after.
#pragma once

#include "redistribute/group_times.h"
#include "redistribute/moves.h"
#include "redistribute/sharding_state.h"

#include <shardprop/redistribute/collective_step.h>

#include <array>
#include <cstdint>

namespace shardprop::redistribute {

// LocalSize is the size of the largest shard of a layout, which the rank at the
// origin holds.
struct LocalSize {
  Dims shape;
  std::int64_t elements = 1;
  std::int64_t memory_pass = 0;  // nanoseconds to read and write it
  bool even = true;  // all ranks hold as much, in one run of each dim
};

// MovePrice is the collective of a move without its mesh dims.
struct MovePrice : CollectiveStep {
  std::int64_t held_bytes = 0;  // input, output and staging
  // False if some rank may send less than the largest shard. The exact bytes
  // then need a count over all ranks.
  bool exact = true;
};

class MovePricer {
 public:
  MovePricer(const GroupTimes& times, const ActiveDims& active,
             const Alphabet& alphabet, const TensorMeta& meta)
      : times_(times),
        active_(active),
        alphabet_(alphabet),
        shape_(meta.shape()),
        dtype_(meta.dtype()),
        item_(item_size(meta.dtype())) {}

  LocalSize local_size(const State& state) const;
  std::int64_t bytes(const LocalSize& size) const {
    return size.elements * item_;
  }

  // Returns a lower bound for any move of this kind over `group` from a shard
  // of this size.
  std::int64_t least(Move move, Mask group, const LocalSize& from_size);

  // Returns the same for an exchange, from the bytes of the shard.
  std::int64_t least_exchange(Mask group, std::int64_t bytes);

  MovePrice price(Move move, Mask group, const State& from,
                  const LocalSize& from_size, const State& to,
                  const LocalSize& to_size);

 private:
  MovePrice gather(Mask group, const State& from, const LocalSize& from_size,
                   const LocalSize& to_size);
  MovePrice reduce_scatter(Mask group, const State& from,
                           const LocalSize& from_size, const State& to,
                           const LocalSize& to_size);
  MovePrice reduce(Mask group, const State& from, const LocalSize& size);
  MovePrice exchange(Mask group, const State& from, const LocalSize& from_size,
                     const State& to, const LocalSize& to_size);
  Placement reduced_placement(Mask group, const State& from) const;
  // Returns whether the shards of `group` are consecutive in the memory of
  // `whole`.
  bool contiguous(Mask group, const State& sharded, const LocalSize& shards,
                  const LocalSize& whole) const;
  bool strided(const State& state) const;
  // GroupCuts are the cuts of the mesh dims of a group.
  struct GroupCuts {
    std::uint64_t dims = 0;  // one bit per tensor dim
    bool strided = false;

    // Returns whether its shards are consecutive in memory.
    bool is_outermost() const { return dims == 1 && !strided; }
  };
  GroupCuts cuts_of(Mask group, const State& state) const;
  bool permutes(Mask group, const State& from, const State& to,
                bool even) const;
  // The number of parts of each cut of a tensor dim, by place.
  using Cuts = std::array<std::int64_t, kMaxPlannedDims>;
  Cuts sizes_of_cuts(const State& state, std::int16_t dim) const;
  std::int64_t timed(CollectiveKind kind, Mask group, std::int64_t bytes);

  // A search has few different sizes, which recur on most of its edges.
  struct Remembered {
    std::int64_t bytes = -1;
    std::uint32_t what = 0;
    std::int64_t nanoseconds = 0;
  };

  const GroupTimes& times_;
  const ActiveDims& active_;
  const Alphabet& alphabet_;
  Dims shape_;
  DType dtype_;
  std::int64_t item_;
  std::array<Remembered, 256> remembered_;
};

}  // namespace shardprop::redistribute

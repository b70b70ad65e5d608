// Copies between two tensors that hold regions of the same full tensor, as a
// list of boxes.
//
//   whole [8]; from holds [0,4) [4,8) in order, to holds [2,4) and [6,8)
//   one copy: from 2 -> to 0, axes {2: step 4 -> 2} {2: step 1 -> 1}
#pragma once

#include <shardprop/base/inline_vector.h>
#include <shardprop/placement/local_region.h>

#include <cstdint>
#include <span>
#include <vector>

namespace shardprop::execute {

// A step is a vector of indices, one entry per dim, so that strides may stay
// unknown until the copy runs. A buffer is a tensor of one dim.
struct CopyAxis {
  std::int64_t size = 1;
  Dims from;
  Dims to;
  friend bool operator==(const CopyAxis&, const CopyAxis&) = default;
};

// Copies the elements at from + sum(i_a * axis_a.from) to to + sum(i_a *
// axis_a.to), for every index i below the axes' sizes. The last index varies
// fastest.
struct RegionCopy {
  Dims from;
  Dims to;
  std::vector<CopyAxis> axes;

  std::int64_t numel() const;
  friend bool operator==(const RegionCopy&, const RegionCopy&) = default;
};

using RegionCopies = std::vector<RegionCopy>;

// Returns copies of the elements that both regions hold, from local indices of
// one to local indices of the other. Both sides of a message compute the same
// list, so they agree on its order.
RegionCopies common_copies(const LocalRegion& from, const LocalRegion& to);

std::int64_t numel(const RegionCopies& copies);

// Returns the copies with one side replaced: a row-major tensor of `shape` that
// starts at `offset` of a buffer.
RegionCopies from_buffer(RegionCopies copies,
                         std::span<const std::int64_t> shape,
                         std::int64_t offset);
RegionCopies to_buffer(RegionCopies copies, std::span<const std::int64_t> shape,
                       std::int64_t offset);

// Merges copies. Neighbours in the list at equal distances become one copy with
// an additional axis. Axes that continue each other become one axis.
RegionCopies merged(RegionCopies copies);

}  // namespace shardprop::execute

// The different shards of a layout, who holds each, and which of them share
// elements with a region.
#pragma once

#include <shardprop/placement/local_region.h>
#include <shardprop/placement/tensor_spec.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace shardprop::redistribute {

// Ranks that hold the same elements, at least one.
struct Shard {
  LocalRegion region;
  std::vector<std::int64_t> ranks;
};

// Mesh dims that do not shard only multiply holders.
std::vector<Shard> shards_of(const TensorSpec& spec);

// Shards of one layout cut each tensor dim into runs of elements, every element
// into just one, and are told apart by which runs they hold. Looking up what
// overlaps takes as long as there are shards that do.
class ShardIndex {
 public:
  // `shards` must outlive the object.
  explicit ShardIndex(std::span<const Shard> shards);

  // Ascending.
  std::vector<std::size_t> overlapping(const LocalRegion& region) const;

 private:
  struct Run {
    Interval elements;
    std::int32_t part;  // which of the dim's different sets of runs
  };
  using Parts = std::vector<std::int32_t>;  // by tensor dim
  struct PartsHash {
    std::size_t operator()(const Parts& parts) const;
  };

  // Parts of a tensor dim that share elements with `wanted`.
  std::vector<std::int32_t> parts(std::size_t dim,
                                  const Intervals& wanted) const;

  std::vector<std::vector<Run>> runs_;  // by tensor dim, ascending
  std::unordered_map<Parts, std::size_t, PartsHash> shards_;
};

}  // namespace shardprop::redistribute

// Lists the different shards of a layout, the holders of each shard, and the
// shards that share elements with a region.
#pragma once

#include <shardprop/placement/local_region.h>
#include <shardprop/placement/tensor_spec.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace shardprop::redistribute {

// Shard is a region and the ranks that hold it, at least one.
struct Shard {
  LocalRegion region;
  std::vector<std::int64_t> ranks;
};

// Returns the shards of a layout. Mesh dims that do not shard only add holders.
std::vector<Shard> shards_of(const TensorSpec& spec);

// ShardIndex finds shards that overlap a region. The shards of one layout cut
// each tensor dim into runs, and each element is in exactly one run. Shards
// differ in the runs that they hold. A lookup takes time in proportion to the
// number of overlapping shards.
class ShardIndex {
 public:
  // `shards` must outlive the object.
  explicit ShardIndex(std::span<const Shard> shards);

  // Returns indices in ascending order.
  std::vector<std::size_t> overlapping(const LocalRegion& region) const;

 private:
  struct Run {
    Interval elements;
    std::int32_t part;  // index among the different sets of runs of the dim
  };
  using Parts = std::vector<std::int32_t>;  // by tensor dim
  struct PartsHash {
    std::size_t operator()(const Parts& parts) const;
  };

  // Returns the parts of a tensor dim that share elements with `wanted`.
  std::vector<std::int32_t> parts(std::size_t dim,
                                  const Intervals& wanted) const;

  std::vector<std::vector<Run>> runs_;  // by tensor dim, ascending
  std::unordered_map<Parts, std::size_t, PartsHash> shards_;
};

}  // namespace shardprop::redistribute

// `LocalRegion` is the set of elements of a tensor that one rank holds.
//
// Uneven shards follow torch.chunk: a dim of size s over n ranks is split into
// chunks of ceil(s/n), so trailing ranks have fewer elements or none. Mesh dims
// that shard the same tensor dim nest in shard order: each shards the part that
// the previous one left. A rank of a strided shard holds several runs of a dim,
// one after another.
//
//   f32[5,3] S(0),S(0) on 2x2, rank (0,1)  ->  rows [2,3), local shape [1,3]
//   f32[8]   SS(0,2)   on [2],  rank (1)   ->  [2,4) and [6,8), local shape [4]
#pragma once

#include <shardprop/base/inline_vector.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/placement/layout.h>
#include <shardprop/placement/tensor_spec.h>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace shardprop {

// `Interval` is the elements begin to end - 1 of a dim.
struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
  friend bool operator==(const Interval&, const Interval&) = default;
};
// `Intervals` are disjoint, non-empty and in local order; adjacent ones are
// merged.
using Intervals = InlineVector<Interval, 2>;

// Returns the range [begin, end) of chunk `index` if torch.chunk splits `size`
// elements into `parts` chunks.
Interval chunk(std::int64_t size, std::int64_t parts, std::int64_t index);

class LocalRegion {
 public:
  explicit LocalRegion(std::vector<Intervals> dims) : dims_(std::move(dims)) {}

  // Returns the intervals of each tensor dim. The overload for temporaries
  // returns by value, so that `for (x : local_region(...).dims())` does not
  // dangle.
  const std::vector<Intervals>& dims() const& { return dims_; }
  std::vector<Intervals> dims() && { return std::move(dims_); }
  // Returns the sizes of the local tensor.
  Dims shape() const;
  std::int64_t numel() const;
  bool empty() const { return numel() == 0; }
  // Returns the start of the local tensor if it is one block of the full
  // tensor; an empty dim starts at 0.
  std::optional<Dims> offset() const;

  friend bool operator==(const LocalRegion&, const LocalRegion&) = default;

 private:
  std::vector<Intervals> dims_;
};

// Computes the region of coordinate `at`. Preconditions: check_layout() passes;
// `at` is a coordinate of `mesh`.
LocalRegion local_region(const Layout& layout, const DeviceMesh& mesh,
                         std::span<const std::int64_t> shape,
                         const Coordinate& at);
LocalRegion local_region(const TensorSpec& spec, const Coordinate& at);

// Returns the intervals that the rank at `at` holds of one tensor dim of `size`
// elements.
Intervals local_intervals(const Layout& layout, const DeviceMesh& mesh,
                          int tensor_dim, std::int64_t size,
                          const Coordinate& at);

// Returns the sizes of the local tensor at `at`, without building its region.
Dims local_shape(const Layout& layout, const DeviceMesh& mesh,
                 std::span<const std::int64_t> shape, const Coordinate& at);

// Returns the sizes of the largest local tensor, to which every rank pads and
// for which it has memory. Without strided shards the rank at the origin holds
// it.
Dims max_local_shape(const Layout& layout, const DeviceMesh& mesh,
                     std::span<const std::int64_t> shape);
Dims max_local_shape(const TensorSpec& spec);
// These return the elements and the bytes of the largest local tensor.
std::int64_t max_local_elements(const Layout& layout, const DeviceMesh& mesh,
                                std::span<const std::int64_t> shape);
std::int64_t max_local_bytes(const Layout& layout, const DeviceMesh& mesh,
                             const TensorMeta& meta);
std::int64_t max_local_bytes(const TensorSpec& spec);

// Returns whether every rank has the same size in every dim. Then there is
// neither padding nor an empty shard, unless the tensor is empty.
bool is_even(const Layout& layout, const DeviceMesh& mesh,
             std::span<const std::int64_t> shape);

}  // namespace shardprop

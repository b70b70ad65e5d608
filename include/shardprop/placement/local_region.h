// LocalRegion: which elements of a tensor one rank holds.
//
// Uneven shards follow torch.chunk: a dim of size s over n ranks is cut into
// chunks of ceil(s/n); trailing ranks hold less, or nothing. Mesh dims that cut
// the same tensor dim nest in shard order: each cuts what the one before left.
// Under a strided shard a rank holds several runs of a dim, one after another.
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

// Elements begin to end - 1 of a dim.
struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
  friend bool operator==(const Interval&, const Interval&) = default;
};
// Disjoint and non-empty, in local order; no two neighbours touch.
using Intervals = InlineVector<Interval, 2>;

// One chunk of a dim, as torch.chunk cuts: [begin, end) of the index-th of
// `parts` chunks of `size` elements.
Interval chunk(std::int64_t size, std::int64_t parts, std::int64_t index);

class LocalRegion {
 public:
  explicit LocalRegion(std::vector<Intervals> dims) : dims_(std::move(dims)) {}

  // What is held of each tensor dim; by value from a region that is about to
  // go, so that a loop over local_region(...).dims() stands on firm ground.
  const std::vector<Intervals>& dims() const& { return dims_; }
  std::vector<Intervals> dims() && { return std::move(dims_); }
  // Sizes of the local tensor.
  Dims shape() const;
  std::int64_t numel() const;
  bool empty() const { return numel() == 0; }
  // Where the local tensor starts, if it is one block of the whole tensor; an
  // empty dim starts at 0.
  std::optional<Dims> offset() const;

  friend bool operator==(const LocalRegion&, const LocalRegion&) = default;

 private:
  std::vector<Intervals> dims_;
};

// Preconditions: check_layout() passes; `at` is a coordinate of `mesh`.
LocalRegion local_region(const Layout& layout, const DeviceMesh& mesh,
                         std::span<const std::int64_t> shape,
                         const Coordinate& at);
LocalRegion local_region(const TensorSpec& spec, const Coordinate& at);

// What is held of one tensor dim of `size` elements.
Intervals local_intervals(const Layout& layout, const DeviceMesh& mesh,
                          int tensor_dim, std::int64_t size,
                          const Coordinate& at);

// Sizes of the local tensor of `at`, without building its region.
Dims local_shape(const Layout& layout, const DeviceMesh& mesh,
                 std::span<const std::int64_t> shape, const Coordinate& at);

// Sizes of the largest local tensor: what every rank pads to and has memory
// for. Without strided shards the rank at the origin holds it.
Dims max_local_shape(const Layout& layout, const DeviceMesh& mesh,
                     std::span<const std::int64_t> shape);
Dims max_local_shape(const TensorSpec& spec);
// Elements and bytes of the largest local tensor.
std::int64_t max_local_elements(const Layout& layout, const DeviceMesh& mesh,
                                std::span<const std::int64_t> shape);
std::int64_t max_local_bytes(const Layout& layout, const DeviceMesh& mesh,
                             const TensorMeta& meta);
std::int64_t max_local_bytes(const TensorSpec& spec);

// Whether every rank holds equally much of every dim: no padding, and no empty
// shards unless the tensor is empty.
bool is_even(const Layout& layout, const DeviceMesh& mesh,
             std::span<const std::int64_t> shape);

}  // namespace shardprop

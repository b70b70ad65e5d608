// `Layout` is one placement per mesh dim, plus the order of mesh dims that
// shard the same tensor dim.
//
// It is printed comma separated, outermost mesh dim first: `S(0),R,P(sum)`. By
// default the outer mesh dim shards first. Any other order is written after the
// entries it concerns: @k is the position of the entry in the order of its
// tensor dim. It parses back.
//
//   S(0),S(0)       dim 0 is sharded over mesh dim 0, each part over mesh dim 1
//   S(0)@1,S(0)@0   dim 0 is sharded over mesh dim 1, each part over mesh dim 0
//
// A `Layout` knows neither mesh nor tensor; `TensorSpec` combines the three and
// checks that they fit. Partials of different kinds do not mix, except sum with
// avg.
#pragma once

#include <shardprop/base/inline_vector.h>
#include <shardprop/base/result.h>
#include <shardprop/placement/placement.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {

using Placements = InlineVector<Placement, 5>;
// `ShardOrder` holds, per mesh dim, the position of its sharding among those of
// the same tensor dim; 0 if the mesh dim does not shard.
using ShardOrder = InlineVector<std::int8_t, 8>;

class Layout {
 public:
  Layout() = default;  // the layout on a mesh without dims

  // Makes a layout in default shard order. Errors: kMixedPartials,
  // kPlacementCount (more than kMaxMeshDims).
  static Result<Layout> create(Placements placements);
  // Errors: kShardOrder, kMixedPartials, kPlacementCount.
  static Result<Layout> create(Placements placements, ShardOrder order);
  // Errors: kPlacementSyntax and those of create().
  static Result<Layout> parse(std::string_view text);
  static Layout replicated(int mesh_ndim);

  int mesh_ndim() const { return static_cast<int>(placements_.size()); }
  Placement operator[](int mesh_dim) const {
    return placements_[static_cast<std::size_t>(mesh_dim)];
  }
  const Placements& placements() const { return placements_; }
  const ShardOrder& shard_order() const { return order_; }
  bool has_default_order() const;

  bool is_replicated() const;
  bool has_partial() const;
  bool has_strided() const;

  // Returns the mesh dims that shard `tensor_dim`, in shard order.
  DimIndices cuts(int tensor_dim) const;
  // Returns one more than the largest sharded tensor dim; 0 if none is sharded.
  int min_tensor_rank() const;

  // Returns the layout with `placement` on one mesh dim. A new shard becomes
  // the innermost of its tensor dim, and the other shards keep their order. The
  // same placement changes nothing. Error: kMixedPartials.
  Result<Layout> with(int mesh_dim, Placement placement) const;

  friend bool operator==(const Layout&, const Layout&) = default;
  friend auto operator<=>(const Layout&, const Layout&) = default;

 private:
  Layout(Placements placements, ShardOrder order)
      : placements_(std::move(placements)), order_(std::move(order)) {}
  Placements placements_;
  ShardOrder order_;
};

std::string to_string(const Layout& layout);

// Prints one text per mesh dim, with the order: {"S(0)@1", "S(0)@0"}.
std::vector<std::string> to_strings(const Layout& layout);
// Parses the texts of to_strings(). Errors: as Layout::parse.
Result<Layout> parse_layout(std::span<const std::string> entries);

}  // namespace shardprop

template <>
struct std::hash<shardprop::Layout> {
  std::size_t operator()(const shardprop::Layout& l) const noexcept {
    return shardprop::hash_range(shardprop::hash_range(0, l.placements()),
                                 l.shard_order());
  }
};

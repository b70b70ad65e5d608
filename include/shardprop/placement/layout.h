// Layout: one placement per mesh dim, and the order in which mesh dims cut a
// tensor dim that several of them shard.
//
// Printed comma separated, outermost mesh dim first: `S(0),R,P(sum)`. By
// default the outer mesh dim cuts first; any other order is written behind the
// entries it concerns, @k being the entry's place among the cuts of its tensor
// dim. Parses back.
//
//   S(0),S(0)       dim 0 is cut over mesh dim 0, each part over mesh dim 1
//   S(0)@1,S(0)@0   dim 0 is cut over mesh dim 1, each part over mesh dim 0
//
// A Layout knows neither mesh nor tensor; TensorSpec joins the three and
// checks that they fit. Partials of different kinds do not mix, sum with avg
// excepted.
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
// Per mesh dim: the place of its cut among those of its tensor dim; 0 where
// the mesh dim does not shard.
using ShardOrder = InlineVector<std::int8_t, 8>;

class Layout {
 public:
  Layout() = default;  // of a mesh without dims

  // Default shard order. Errors: kMixedPartials, kPlacementCount (more than
  // kMaxMeshDims).
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

  // The mesh dims that cut `tensor_dim`, first cut first.
  DimIndices cuts(int tensor_dim) const;
  // One past the largest tensor dim that is sharded; 0 when none is.
  int min_tensor_rank() const;

  // The same layout with one mesh dim changed, if it is a change: a new shard
  // cuts last, and the cuts that remain keep their order. Error:
  // kMixedPartials.
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

// One text per mesh dim, orders included: {"S(0)@1", "S(0)@0"}.
std::vector<std::string> to_strings(const Layout& layout);
// Reads them back. Errors: as Layout::parse.
Result<Layout> parse_layout(std::span<const std::string> entries);

}  // namespace shardprop

template <>
struct std::hash<shardprop::Layout> {
  std::size_t operator()(const shardprop::Layout& l) const noexcept {
    return shardprop::hash_range(shardprop::hash_range(0, l.placements()),
                                 l.shard_order());
  }
};

// `FactorSharding` is how one factor of an index space is sharded: a `Layout`
// of the factor taken as a 1-D tensor.
//
//   R,R             no mesh dim shards the factor
//   S(0),S(0)       mesh dim 0 shards it, then mesh dim 1 (mesh order)
//   S(0)@1,S(0)@0   mesh dim 1 shards it, then mesh dim 0
//   SS(0,3),R       mesh dim 0 shards each of its three pieces
//
// All operands of a call that have the factor get the same sharding of it.
#pragma once

#include <shardprop/placement/layout.h>

#include <compare>
#include <utility>

namespace shardprop {

using FactorSharding = Layout;

// `FactorShardings` holds the shardings of all factors of a strategy. It is a
// `Layout` of the iteration space: S(f) on a mesh dim that shards factor f. The
// default value stands for mesh order: mesh dims that are given to the same
// factor shard it in the order of the mesh, without strides.
//
//   mm ab,bc->ac, both mesh dims given to a: S(0)@1,S(0)@0
//     shards a over mesh dim 1, then over mesh dim 0
class FactorShardings {
 public:
  FactorShardings() = default;
  // Precondition: no entry of the layout is partial.
  explicit FactorShardings(Layout of_all) : of_all_(std::move(of_all)) {}

  bool is_mesh_order() const { return of_all_.mesh_ndim() == 0; }
  // Returns a layout on a mesh without dims for mesh order.
  const Layout& of_all() const { return of_all_; }
  // Returns the sharding of one factor. Precondition: not is_mesh_order().
  FactorSharding of(int factor) const;

  friend bool operator==(const FactorShardings&,
                         const FactorShardings&) = default;
  friend auto operator<=>(const FactorShardings&,
                          const FactorShardings&) = default;

 private:
  Layout of_all_;  // on a mesh without dims for mesh order
};

}  // namespace shardprop

// Least-cost redistribution of a tensor on one mesh.
//
// A plan is a shortest path through a stated finite set of layouts along a
// stated table of moves; no path through them is cheaper.
//
// Layouts. Every assignment to each mesh dim of
//   * R;
//   * S(d), for every tensor dim d, in every shard order;
//   * SS(d,k), where source or target hold strided shards: for every d they
//     stride, k among their split factors and the products of the sizes of
//     other mesh dims (RedistributeOptions::split_factors widens or narrows);
//   * P(op), for every partial of source and target;
// in canonical form, partials unmixed (sum with avg excepted).
//
// Moves. Over any set G of mesh dims at once, as one collective of one cost:
//   all_gather      S -> R on all of G
//   reduce_scatter  P -> S on all of G
//   all_reduce      P -> R on all of G
//   all_to_all, permute   shards -> other shards on all of G
//   slice           R -> S on all of G; R -> P on all of G; P(sum) <-> P(avg)
// where shards that leave are the last cuts of their tensor dims as the
// canonical form has them, and shards that come cut last. So every rank's data
// stays within its group, for any size of the tensor. P only ever comes from R
// or from P. What a move costs follows from source, target and G alone, both in
// canonical form.
//
// Among equal costs a path of fewest steps wins, and among those always the
// same one: same input, same plan.
//
//   auto mesh = DeviceMesh::parse("dp=2,tp=4").value();
//   auto src = TensorSpec::parse("bf16[4096,4096] S(0),R", mesh).value();
//   auto dst = TensorSpec::parse("bf16[4096,4096] R,S(1)", mesh).value();
//   auto plan = plan_redistribution(src, dst, default_topology()).value();
//   // slice over tp, then all_gather over dp
#pragma once

#include <shardprop/base/result.h>
#include <shardprop/mesh/topology.h>
#include <shardprop/placement/tensor_spec.h>
#include <shardprop/redistribute/redistribute_plan.h>

#include <cstdint>
#include <memory>
#include <optional>

namespace shardprop {

namespace redistribute {
class Reach;
}

// A planner takes meshes of up to this many dims larger than 1.
inline constexpr int kMaxPlannedDims = 5;

enum class SplitFactors : std::uint8_t {
  kEndpoints,         // those of source and target
  kEndpointsAndMesh,  // and of the mesh, where source or target are strided
  kAll,               // those of the mesh for every tensor dim
};

struct RedistributeOptions {
  // Most bytes a rank may hold at once: source, input, output and staging.
  std::optional<std::int64_t> memory_limit;
  SplitFactors split_factors = SplitFactors::kEndpointsAndMesh;
  // Whether a cut that leaves ranks with nothing, as 4 elements over 3 do, is
  // planned for or refused (kRedistributeMeshTooLarge).
  bool allow_empty_shards = true;
  // Gathers and reductions of less than this many bytes share one launch with
  // others that add up to it, as frameworks bucket parameters and gradients:
  // they pay their share of the bucket's time. 0: each is a launch of its own.
  std::int64_t bucket_bytes = 0;

  friend bool operator==(const RedistributeOptions&,
                         const RedistributeOptions&) = default;
};

// Plans for one mesh. Safe to use from several threads at once.
class RedistributePlanner {
 public:
  // Error: kRedistributeMeshTooLarge.
  static Result<RedistributePlanner> create(
      DeviceMesh mesh, const Topology& topology,
      const RedistributeOptions& options = {});

  const DeviceMesh& mesh() const;
  const RedistributeOptions& options() const;

  // Preconditions: check_layout() passes for both. They are taken in canonical
  // form. Errors: kShardToPartial (a mesh dim goes from a shard to a partial),
  // kRedistributeMemory, kRedistributeMeshTooLarge.
  Result<RedistributePlan> plan(const Layout& src, const Layout& dst,
                                const TensorMeta& meta) const;
  // The plan's nanoseconds alone. Errors: as plan().
  Result<std::int64_t> cost(const Layout& src, const Layout& dst,
                            const TensorMeta& meta) const;

 private:
  struct Body;
  explicit RedistributePlanner(std::shared_ptr<const Body> body);
  std::shared_ptr<const Body> body_;
  friend class RedistributeRows;
  friend class redistribute::Reach;
};

// One plan. Errors: those of RedistributePlanner, kRedistributeTensor (other
// shape or dtype), kRedistributeMeshes (other ranks: see cross_mesh.h).
Result<RedistributePlan> plan_redistribution(
    const TensorSpec& src, const TensorSpec& dst, const Topology& topology,
    const RedistributeOptions& options = {});

}  // namespace shardprop

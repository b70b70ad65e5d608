// `RedistributePlanner` finds the cheapest redistribution of a tensor on one
// mesh.
//
// A plan is a shortest path through the finite set of layouts below, along the
// moves below. No path through them is cheaper.
//
// Layouts: every assignment of these placements to the mesh dims:
//   * R;
//   * S(d), for every tensor dim d, in every shard order;
//   * SS(d,k), if source or target have strided shards: for every tensor dim d
//     that they stride; k is one of their split factors or a product of sizes
//     of other mesh dims (RedistributeOptions::split_factors changes this set);
//   * P(op), for every partial of source and target;
// in canonical form, with partials of one kind (sum with avg excepted).
//
// Moves: one collective over any set G of mesh dims, with one cost:
//   all_gather      S -> R on all of G
//   reduce_scatter  P -> S on all of G
//   all_reduce      P -> R on all of G
//   all_to_all, permute   shards -> other shards on all of G
//   slice           R -> S on all of G; R -> P on all of G; P(sum) <-> P(avg)
// A move may only remove the innermost shards of a tensor dim in the canonical
// form, and new shards become the innermost. So every rank's data stays within
// its group, for any size of the tensor. P is only reached from R or from P.
// The cost of a move depends only on source, target and G, in canonical form.
//
// Among paths of equal cost, one with the fewest steps is chosen, in a fixed
// order: the same input gives the same plan.
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

// A planner accepts meshes with at most this many dims larger than 1.
inline constexpr int kMaxPlannedDims = 5;

// `SplitFactors` selects the split factors k of the layouts SS(d,k).
enum class SplitFactors : std::uint8_t {
  kEndpoints,         // of source and target
  kEndpointsAndMesh,  // also of the mesh, if source or target is strided
  kAll,               // of the mesh for every tensor dim
};

// `RedistributeOptions` restrict the plans and set their cost model.
struct RedistributeOptions {
  // Maximum bytes of one rank at any time: source, input, output and staging.
  std::optional<std::int64_t> memory_limit;
  SplitFactors split_factors = SplitFactors::kEndpointsAndMesh;
  // If false, a layout that leaves a rank without elements, such as 4 elements
  // over 3 ranks, is an error (kRedistributeMeshTooLarge).
  bool allow_empty_shards = true;
  // Bucket size in bytes; 0 means that each collective has its own launch.
  // All-gathers and reductions of fewer bytes share one launch with others of
  // that total size. They pay their share of the bucket's time. Frameworks
  // bucket parameters and gradients in this way.
  std::int64_t bucket_bytes = 0;

  friend bool operator==(const RedistributeOptions&,
                         const RedistributeOptions&) = default;
};

// `RedistributePlanner` plans for one mesh. Several threads may use it at once.
class RedistributePlanner {
 public:
  // Error: kRedistributeMeshTooLarge.
  static Result<RedistributePlanner> create(
      DeviceMesh mesh, const Topology& topology,
      const RedistributeOptions& options = {});

  const DeviceMesh& mesh() const;
  const RedistributeOptions& options() const;

  // Plans from `src` to `dst`, both brought to canonical form. Precondition:
  // check_layout() passes for both. Errors: kShardToPartial (a mesh dim changes
  // from a shard to a partial), kRedistributeMemory, kRedistributeMeshTooLarge.
  Result<RedistributePlan> plan(const Layout& src, const Layout& dst,
                                const TensorMeta& meta) const;
  // Returns the plan's nanoseconds only. Errors: as plan().
  Result<std::int64_t> cost(const Layout& src, const Layout& dst,
                            const TensorMeta& meta) const;

 private:
  struct Body;
  explicit RedistributePlanner(std::shared_ptr<const Body> body);
  std::shared_ptr<const Body> body_;
  friend class RedistributeRows;
  friend class StridedCosts;
  friend class redistribute::Reach;
};

// Makes a planner for one plan. Errors: those of RedistributePlanner,
// kRedistributeTensor (another shape or dtype), kRedistributeMeshes (other
// ranks; see cross_mesh.h).
Result<RedistributePlan> plan_redistribution(
    const TensorSpec& src, const TensorSpec& dst, const Topology& topology,
    const RedistributeOptions& options = {});

}  // namespace shardprop

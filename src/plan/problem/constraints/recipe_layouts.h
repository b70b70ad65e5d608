// RecipeLayouts applies a recipe to a graph. It states which factor of every
// operator each mesh dim shards, and how parameters and batches are stored.
#pragma once

#include "graph/analysis/dim_roles.h"
#include "plan/problem/constraints/restriction.h"
#include "plan/problem/plan_problem.h"

#include <shardprop/graph/graph.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/placement/layout.h>
#include <shardprop/plan/recipe.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace shardprop {

// DimWish states which factor of an operator a mesh dim should shard.
struct DimWish {
  enum class Kind : std::uint8_t {
    kFree,     // the cheapest factor, or none
    kNothing,  // no factor: replicated compute
    kFactor,
  };
  Kind kind = Kind::kFree;
  std::vector<FactorId> factors;  // in order of preference
  // The factor consists of this many equal pieces, and each piece is sharded.
  std::int64_t pieces = 1;
  friend auto operator<=>(const DimWish&, const DimWish&) = default;
};
using NodeWish = std::vector<DimWish>;  // by mesh dim

// `RecipeUse` lists the purposes that a recipe has for a mesh dim.
struct RecipeUse {
  bool data = false;
  bool shards_state = false;
  bool tensor = false;
  bool by_tokens = false;
  bool experts = false;
  friend bool operator==(const RecipeUse&, const RecipeUse&) = default;
};

class RecipeLayouts {
 public:
  // `recipe` is a result of on_mesh(). All arguments must outlive the object.
  RecipeLayouts(const Recipe& recipe, const Graph& graph,
                const DeviceMesh& mesh, const DimRoles& roles);

  NodeWish wish(const Node& node) const;
  // Returns the canonical layout of a parameter, or of an input that has the
  // batch. Empty if the recipe does not specify one.
  std::optional<Layout> stored(const GraphInput& input) const;

  // Returns the mesh dims in the order in which wishes are granted: tensor and
  // experts before data.
  std::span<const int> order() const { return order_; }

 private:
  DimWish wish(const Node& node, int mesh_dim) const;
  // Groups the values that operators of tensor parallelism link: the attention
  // and the feed-forward part of a layer are two groups.
  void find_groups();
  // Finds the groups whose pieces of a fused projection may be sharded over the
  // mesh dim: every rank then has a part of all that the pieces become, such as
  // heads. Otherwise an operator would have to move the pieces.
  void find_fitting(int mesh_dim);
  bool pieces_fit(ValueId value, int mesh_dim) const;
  bool pieces_fit(const Node& node, int mesh_dim) const;
  bool place(const Value& value, const DimTrace& at, int mesh_dim,
             Placements& placements, ShardOrder& order) const;

  const Graph& graph_;
  const DeviceMesh& mesh_;
  const DimRoles& roles_;
  std::vector<RecipeUse> uses_;  // by mesh dim
  std::vector<int> order_;
  std::vector<std::size_t> group_;       // by value
  std::vector<std::vector<bool>> fits_;  // by mesh dim and group
};

// Returns the choices that grant a wish. It takes the mesh dims in `order`. For
// each one it keeps the choices that grant the wish, or all choices if no
// choice does.
std::vector<std::uint32_t> granted(const ChoiceSet& set,
                                   const LayoutTable& layouts,
                                   const NodeWish& wish,
                                   std::span<const int> order);

// Returns the choices of the problem that follow the recipe, a result of
// on_mesh(). An input that cannot have the recipe's layout keeps all of its
// choices.
Restriction following(const PlanProblem& problem, const Recipe& recipe);

// Returns whether a plan of the space can follow the recipe. This needs two
// conditions:
//   1. the recipe uses joined mesh dims for the same purpose, and
//   2. its mesh dims larger than 1 form no more runs of neighbours than the
//      space has.
bool is_in_space(const Recipe& recipe, const DeviceMesh& mesh,
                 const PlanSpace& space);

// Returns the mesh dims that a recipe uses for the same purpose as the mesh dim
// before them, as PlanSpace::joined_dims.
std::uint32_t joined_dims(const Recipe& recipe, const DeviceMesh& mesh);

}  // namespace shardprop

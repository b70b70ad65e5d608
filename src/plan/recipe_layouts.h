// A recipe on a graph: what each mesh dim is given to in every operator, and
// how parameters and batches are stored.
#pragma once

#include "plan/dim_roles.h"
#include "plan/plan_problem.h"
#include "plan/restriction.h"

#include <shardprop/graph/graph.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/placement/layout.h>
#include <shardprop/plan/recipe.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace shardprop {

// What an operator gives one mesh dim to.
struct DimWish {
  enum class Kind : std::uint8_t {
    kFree,     // whatever is cheapest
    kNothing,  // no factor: alike on all its ranks
    kFactor,
  };
  Kind kind = Kind::kFree;
  std::vector<FactorId> factors;  // the first of them that can be
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
  // `recipe` is on_mesh(). All must outlive the object.
  RecipeLayouts(const Recipe& recipe, const Graph& graph,
                const DeviceMesh& mesh, const DimRoles& roles);

  NodeWish wish(const Node& node) const;
  // Of a parameter, or of an input that holds a batch; canonical. Empty where
  // the recipe says nothing.
  std::optional<Layout> stored(const GraphInput& input) const;

  // Indices of the mesh dims in the order in which wishes are granted: tensors
  // and experts before data.
  std::span<const int> order() const { return order_; }

 private:

  DimWish wish(const Node& node, const RecipeUse& use) const;
  bool place(const Value& value, int dim, int mesh_dim, Placements& placements,
             ShardOrder& order) const;

  const Graph& graph_;
  const DeviceMesh& mesh_;
  const DimRoles& roles_;
  std::vector<RecipeUse> uses_;  // by mesh dim
  std::vector<int> order_;
};

// The choices that a wish leaves: mesh dim by mesh dim in `order`, those that
// grant it, where there are any.
std::vector<std::uint32_t> granted(const ChoiceSet& set, const NodeWish& wish,
                                   std::span<const int> order);

// The choices of the problem that follow the recipe, which is on_mesh(). An
// input that cannot have the recipe's layout keeps all of its choices.
Restriction following(const PlanProblem& problem, const Recipe& recipe);

// Whether a plan of the space can follow the recipe: the recipe
// uses joined mesh dims for the same, and the mesh dims larger than 1 in no more
// runs of neighbours than the space has.
bool is_in_space(const Recipe& recipe, const DeviceMesh& mesh,
                 const PlanSpace& space);

// Mesh dims that a recipe uses for the same as the mesh dim before them, as
// PlanSpace::joined_dims.
std::uint32_t joined_dims(const Recipe& recipe, const DeviceMesh& mesh);

}  // namespace shardprop

#include "plan/search/parts/search_stages.h"

#include "base/try.h"
#include "plan/problem/constraints/recipe_layouts.h"

#include <bit>

namespace shardprop {
namespace {

constexpr PlanSpace kOneRun{1};
constexpr PlanSpace kTwoRuns{2};
constexpr PlanSpace kNamed{};

// Returns the space in which all mesh dims larger than 1 but the last are one.
// The known recipes are in it, and it is built as fast as on a mesh of two
// dims.
PlanSpace last_dim_apart(const DeviceMesh& mesh) {
  PlanSpace space{2};
  int last = -1;
  for (int m = 0; m < mesh.ndim(); ++m) {
    if (mesh.size(m) == 1) continue;
    if (last >= 0) space.joined_dims |= 1U << m;
    last = m;
  }
  space.joined_dims &= ~(1U << last);
  return space;
}

// Returns the space in which mesh dims that the recipe uses for the same
// purpose are one.
PlanSpace space_of(const Recipe& recipe, const DeviceMesh& mesh, int dims) {
  PlanSpace space;
  space.joined_dims = joined_dims(recipe, mesh);
  space.most_runs = dims - std::popcount(space.joined_dims);
  return space;
}

}  // namespace

Result<std::vector<Stage>> search_stages(const DeviceMesh& mesh,
                                         const PlanQuestion& question) {
  const int dims = mesh.num_active_dims();
  if (dims < 2) return std::vector<Stage>{{kNamed}};
  if (question.recipe) {
    // A recipe leaves few choices, so on two mesh dims the named space is built
    // at once.
    if (dims == 2) return std::vector<Stage>{{kNamed}};
    SP_ASSIGN(const Recipe recipe, on_mesh(*question.recipe, mesh));
    const PlanSpace space = space_of(recipe, mesh, dims);
    if (space.joined_dims == 0) return std::vector<Stage>{{kNamed}};
    return std::vector<Stage>{{space, tuning::kRecipeStage},
                              {kNamed, tuning::kNamedStage}};
  }
  if (dims == 2) {
    return std::vector<Stage>{{kOneRun, tuning::kOneRunOfTwoDimsStage},
                              {kNamed}};
  }
  std::vector<Stage> stages{{last_dim_apart(mesh), tuning::kLastDimApartStage},
                            {kOneRun, tuning::kOneRunStage, true}};
  if (dims == 3) {
    stages.push_back({kTwoRuns, tuning::kTwoRunsOfThreeDimsStage, true});
  } else {
    stages.push_back({kTwoRuns, tuning::kTwoRunsOfMoreDimsStage});
  }
  stages.push_back({kNamed, tuning::kNamedStage});
  return stages;
}

}  // namespace shardprop

// `RecipeChoices` keeps the choices of each operator that follow the recipe of the
// options. It also has the layout in which the recipe stores each input.
//
// RestrictedProblem with following() is a smaller space: its buffers lose the
// layouts that no remaining choice produces or reads. Under a memory limit, a
// plan may cache a buffer in such a layout.
#pragma once

#include "plan/problem/constraints/recipe_layouts.h"
#include "plan/problem/problem_data.h"

#include <map>
#include <memory>
#include <optional>
#include <utility>

namespace shardprop {

class RecipeChoices {
 public:
  // `recipe` is a result of on_mesh(). `data` must outlive the object, and its
  // roles must be known.
  RecipeChoices(Recipe recipe, const ProblemData& data)
      : recipe_(std::move(recipe)),
        layouts_(recipe_, data.graph, data.mesh, *data.roles),
        table_(data.layouts) {}
  RecipeChoices(const RecipeChoices&) = delete;
  RecipeChoices& operator=(const RecipeChoices&) = delete;

  // Returns the choices that follow the recipe; all choices if none does.
  std::shared_ptr<const ChoiceSet> that_follow(
      const Node& node, const std::shared_ptr<const ChoiceSet>& set);
  // Returns RecipeLayouts::stored().
  std::optional<Layout> stored(const GraphInput& input) const {
    return layouts_.stored(input);
  }

 private:
  Recipe recipe_;
  RecipeLayouts layouts_;
  const LayoutTable& table_;
  // The choices that grant a wish, by the choices before and the wish.
  std::map<std::pair<std::shared_ptr<const ChoiceSet>, NodeWish>,
           std::shared_ptr<const ChoiceSet>>
      kept_;
};

}  // namespace shardprop

#include "plan/problem/constraints/recipe_choices.h"

#include "plan/problem/choices/choice_subsets.h"

namespace shardprop {

std::shared_ptr<const ChoiceSet> RecipeChoices::that_follow(
    const Node& node, const std::shared_ptr<const ChoiceSet>& set) {
  NodeWish wish = layouts_.wish(node);
  auto [known, is_new] = kept_.try_emplace({set, std::move(wish)});
  if (is_new) {
    // Layouts that no choice has are kept, since a path between two others
    // may lead over them.
    known->second = with_choices(
        *set, granted(*set, table_, known->first.second, layouts_.order()));
  }
  return known->second;
}

}  // namespace shardprop

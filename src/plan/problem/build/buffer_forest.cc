#include "plan/problem/build/buffer_forest.h"

#include "base/index.h"
#include "graph/analysis/view_source.h"

#include <utility>

namespace shardprop {

void BufferForest::add_view(ValueId value, ValueId of,
                            std::shared_ptr<const ChoiceSet> choices) {
  links_[value.index()] = {of, root(of), std::move(choices)};
}

ValueId BufferForest::root(ValueId value) const {
  const ValueId root = links_[value.index()].root;
  return root.valid() ? root : value;
}

std::vector<LayoutSet> BufferForest::required_layouts(
    const std::vector<PlanVariable>& variables,
    const std::vector<std::vector<LayoutId>>& copied_to) const {
  std::vector<LayoutSet> required(links_.size());
  for (std::size_t v = 0; v < copied_to.size(); ++v) {
    for (const LayoutId id : copied_to[v]) required[v].add(id);
  }
  for (const PlanVariable& variable : variables) {
    if (!variable.choices) continue;
    for (std::size_t u = 0; u < variable.uses.size(); ++u) {
      LayoutSet& of_value = required[variable.uses[u].index()];
      for (const LayoutId id : variable.choices->layouts[u]) of_value.add(id);
    }
  }
  // A view comes after the value that it views.
  for (std::size_t v = links_.size(); v-- > 0;) {
    if (!links_[v].parent.valid()) continue;
    const ChoiceSet& view = *links_[v].view;
    for (std::size_t c = 0; c < view.size(); ++c) {
      if (required[v].contains(view.layout(c, 1))) {
        required[links_[v].parent.index()].add(view.layout(c, 0));
      }
    }
  }
  return required;
}

void BufferForest::see(std::vector<std::vector<LayoutId>>& layouts) const {
  // A view comes after the value that it views.
  for (std::size_t v = 0; v < links_.size(); ++v) {
    if (!links_[v].parent.valid()) continue;
    LayoutSet of_parent;
    for (const LayoutId id : layouts[links_[v].parent.index()]) {
      of_parent.add(id);
    }
    const ChoiceSet& view = *links_[v].view;
    layouts[v].clear();
    for (std::size_t c = 0; c < view.size(); ++c) {
      if (of_parent.contains(view.layout(c, 0))) {
        layouts[v].push_back(view.layout(c, 1));
      }
    }
  }
}

}  // namespace shardprop

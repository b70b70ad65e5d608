// PinnedChoices filters each operator's choices to those whose outputs have the
// pinned layouts, and whose inputs have the layouts that `used:` pins demand.
#pragma once

#include "plan/problem/pinned_values.h"
#include "plan/problem/plan_problem.h"
#include "plan/problem/problem_data.h"

#include <cstddef>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

namespace shardprop {

class PinnedChoices {
 public:
  // `data` must outlive the object.
  PinnedChoices(ProblemData& data, PinnedValues values);

  const PinnedLayout* produced(ValueId value) const {
    return values_.produced(value);
  }
  const std::vector<PinnedLayout>& used(ValueId input) const {
    return values_.used(input);
  }
  const PinnedLayout* state(ValueId parameter) const {
    return values_.state(parameter);
  }
  bool produces_pinned(const Node& node) const;

  // Returns the choices that produce the results of `node` in their pinned
  // layouts. A pin that no strategy satisfies is passed over.
  std::shared_ptr<const ChoiceSet> that_make(
      const Node& node, std::shared_ptr<const ChoiceSet> set);
  // Returns the choices that read the inputs of `node` in their pinned layouts.
  std::shared_ptr<const ChoiceSet> that_take(
      const Node& node, std::shared_ptr<const ChoiceSet> set);
  // Counts the pinned uses of the node, and those whose layout that_take() keeps.
  struct Taken {
    std::size_t kept = 0;
    std::size_t all = 0;
  };
  Taken taken(const Node& node, std::shared_ptr<const ChoiceSet> set);
  // Passes over the pin of a state: the graph is planned without an optimizer, or
  // the pinned layout of the parameter is not gathered from that of the state.
  void pass_over_state(ValueId parameter);
  // Notes the layouts in which a view must be read if the value that it views
  // has pinned uses.
  void see_view(const Node& view, const ChoiceSet& set);

  Result<std::vector<PinnedValues::Count>> counts() const {
    return values_.counts();
  }

 private:
  // Keeps the choices with the layout of each pinned use of the node. A use that
  // no choice left has in its layout removes none. Calls `look(use, is_kept)`
  // for each use.
  template <class Look>
  std::shared_ptr<const ChoiceSet> take(const Node& node,
                                        std::shared_ptr<const ChoiceSet> set,
                                        const Look& look);
  std::shared_ptr<const ChoiceSet> with_layout(
      const std::shared_ptr<const ChoiceSet>& set, std::size_t operand,
      LayoutId required);
  Error no_strategy(const Node& node, std::size_t output, const ChoiceSet& set,
                    const PinnedLayout& required) const;

  // Use is the layout in which an input, or a view of one, must be read.
  struct Use {
    ValueId input;
    const PinnedLayout* pinned = nullptr;
    LayoutId layout;  // of the value or view
  };

  ProblemData& data_;
  PinnedValues values_;
  std::map<ValueId, std::vector<Use>> uses_;
  // The filtered choices, by choices, operand and layout.
  std::map<std::tuple<std::shared_ptr<const ChoiceSet>, std::size_t, LayoutId>,
           std::shared_ptr<const ChoiceSet>>
      kept_;
};

}  // namespace shardprop

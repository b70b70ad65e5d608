// PinnedChoices: what pins leave of the choices of operators: those that make
// what is pinned as it is pinned, and take what is pinned for its users so.
#pragma once

#include "plan/pinned_values.h"
#include "plan/plan_problem.h"
#include "plan/problem_data.h"

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

  const PinnedLayout* made(ValueId value) const { return values_.made(value); }
  bool makes_pinned(const Node& node) const;

  // The choices that make the results of `node` as they are pinned. A pin that
  // no strategy honours is passed over.
  std::shared_ptr<const ChoiceSet> that_make(
      const Node& node, std::shared_ptr<const ChoiceSet> set);
  // The choices that take its inputs as they are pinned.
  std::shared_ptr<const ChoiceSet> that_take(
      const Node& node, std::shared_ptr<const ChoiceSet> set);
  // A view is taken as what it views would be.
  void see_view(const Node& view, const ChoiceSet& set);

  Result<std::vector<PinnedValues::Count>> counts() const {
    return values_.counts();
  }

 private:
  std::shared_ptr<const ChoiceSet> with_layout(
      const std::shared_ptr<const ChoiceSet>& set, std::size_t operand,
      LayoutId wanted);
  Error no_strategy(const Node& node, std::size_t output, const ChoiceSet& set,
                    const PinnedLayout& wanted) const;

  // How a value is to be taken: an input, or a view of one.
  struct Use {
    ValueId input;
    const PinnedLayout* pinned = nullptr;
    LayoutId layout;  // of the value itself
  };

  ProblemData& data_;
  PinnedValues values_;
  std::map<ValueId, std::vector<Use>> uses_;
  // By choices, operand and layout.
  std::map<std::tuple<std::shared_ptr<const ChoiceSet>, std::size_t, LayoutId>,
           std::shared_ptr<const ChoiceSet>>
      kept_;
};

}  // namespace shardprop

// GivenChoices describes a plan problem whose choices a saved plan has made:
// each operator has one strategy, and each input the layouts that the plan
// names. This problem is built in a fraction of the time of the named space.
#pragma once

#include "plan/problem/plan_problem.h"

#include <shardprop/placement/layout.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace shardprop {

struct GivenChoices {
  // View is a copy of one value of a buffer that is read or copied as another
  // one, in this layout of `as`.
  struct View {
    ValueId of;
    ValueId as;
    Layout layout;
  };
  // By node: the layouts of its inputs, then those of its outputs. Views that
  // share a buffer keep all their strategies, since copies may be read through
  // other views.
  std::vector<std::vector<Layout>> nodes;
  // By input: its layout, and the layout of its optimizer's state.
  std::vector<std::vector<Layout>> inputs;
  std::vector<Layout> outputs;  // by output of the graph
  // By value: the layouts of its redistributed copies.
  std::vector<std::vector<Layout>> copies;
  std::vector<View> views;  // that lead from one value of a buffer to another
};

std::vector<LayoutId> interned(LayoutTable& table,
                               const std::vector<Layout>& layouts);

// GivenStrategies selects the strategy that the given choices name.
class GivenStrategies {
 public:
  // All must outlive the object.
  GivenStrategies(const GivenChoices& given, LayoutTable& layouts)
      : given_(given), layouts_(layouts) {}

  // Returns the strategy of the node that has the given layouts. Error:
  // kPlanFile, at `place`.
  Result<std::shared_ptr<const ChoiceSet>> of(const Node& node,
                                              const ChoiceSet& set,
                                              const std::string& place);

 private:
  const GivenChoices& given_;
  LayoutTable& layouts_;
  // By all choices of a node and its given layouts: the selected strategy.
  std::map<std::vector<std::uint64_t>, std::shared_ptr<const ChoiceSet>> kept_;
};

}  // namespace shardprop

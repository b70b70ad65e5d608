// GivenChoices: a plan problem in which almost everything is decided: each
// operator has the one strategy, and each input the layouts, that a saved plan
// names. Set up in a fraction of the time that the named space takes.
#pragma once

#include "plan/plan_problem.h"

#include <shardprop/placement/layout.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace shardprop {

struct GivenChoices {
  // By node, what it takes and then what it makes. Views that share a storage
  // keep all their strategies: copies may be seen through others.
  std::vector<std::vector<Layout>> nodes;
  // By input: its layout, and that of its optimizer's state.
  std::vector<std::vector<Layout>> inputs;
  std::vector<Layout> outputs;  // by output of the graph
  // By value: what copies of it lie in.
  std::vector<std::vector<Layout>> copies;
};

std::vector<LayoutId> interned(LayoutTable& table,
                               const std::vector<Layout>& layouts);

// The strategies that given choices name.
class GivenStrategies {
 public:
  // All must outlive the object.
  GivenStrategies(const GivenChoices& given, LayoutTable& layouts)
      : given_(given), layouts_(layouts) {}

  // The one with the layouts that are given. Error: kPlanFile, at `place`.
  Result<std::shared_ptr<const ChoiceSet>> of(const Node& node,
                                              const ChoiceSet& set,
                                              const std::string& place);

 private:
  const GivenChoices& given_;
  LayoutTable& layouts_;
  // By all choices, and the layouts of the one that is given.
  std::map<std::vector<std::uint64_t>, std::shared_ptr<const ChoiceSet>> kept_;
};

}  // namespace shardprop

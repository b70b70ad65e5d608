// GivenChoices: a plan problem in which almost everything is decided: each
// operator has the one strategy, and each input the layouts, that a saved plan
// names. Set up in a fraction of the time that the named space takes.
#pragma once

#include <shardprop/placement/layout.h>

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

}  // namespace shardprop

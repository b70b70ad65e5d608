// Tests the layouts of an optimizer's state. If its shards are smaller than the
// parameter's, a rank slices them from its own shard, so that reading them
// sends no data.
#include "plan/explain/assemble_plan.h"
#include "plan/invariants.h"
#include "plan/small_graphs.h"
#include "support/dear_topology.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/plan/make_plan.h>
#include <shardprop/redistribute/redistribute_plan.h>

#include <string>

namespace shardprop {
namespace {

using testing::dear_compute;
using testing::value_of;

struct Counted {
  int smaller = 0;    // states in smaller shards than the parameter
  int reordered = 0;  // layouts that cut a dim in another order of mesh dims
};

Counted check_states(const PlanProblem& problem) {
  Counted counted;
  for (const PlanVariable& variable : problem.variables()) {
    if (variable.kind != PlanVariable::Kind::kInput) continue;
    const ChoiceSet& set = *variable.choices;
    if (set.state_layouts.empty()) continue;
    for (const LayoutId id : set.layouts.back()) {
      counted.reordered += problem.layouts()[id].has_default_order() ? 0 : 1;
    }
    REQUIRE(set.state_layouts.size() == set.size());
    for (std::size_t c = 0; c < set.size(); ++c) {
      const LayoutId own = set.layout(c, variable.uses.size());
      const LayoutId state = set.state_layouts[c];
      if (own == state) continue;
      ++counted.smaller;
      CAPTURE(to_string(problem.layouts()[own]));
      CAPTURE(to_string(problem.layouts()[state]));
      CHECK(problem.redistribution(variable.makes[0], own, state).nanoseconds ==
            0);
    }
  }
  return counted;
}

TEST_CASE("an optimizer's state is a part of its parameter's shard") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = value_of(
      load_graph("examples/graphs/tiny/gpt2_train_cuda.json.gz", library));
  for (const double overlap : {0.0, 1.0}) {
    CAPTURE(overlap);
    PlanOptions options;
    options.optimizer = Optimizer::kAdamW;
    options.overlap = overlap;
    const Counted counted = check_states(value_of(
        PlanProblem::create(graph, value_of(DeviceMesh::parse("2,2,2")),
                            dear_compute(), library, options)));
    CHECK(counted.smaller > 100);
    CHECK(counted.reordered > 0);
  }
}

}  // namespace
}  // namespace shardprop

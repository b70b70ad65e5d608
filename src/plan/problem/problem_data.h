// ProblemData is the data of a plan problem. The analyses that build the problem
// write it; PlanProblem answers queries from it.
#pragma once

#include "base/saturating.h"
#include "graph/analysis/dim_roles.h"
#include "plan/problem/fusion.h"
#include "plan/problem/overlap_windows.h"
#include "plan/problem/pinned_values.h"
#include "plan/problem/plan_budget.h"
#include "plan/problem/plan_variable.h"
#include "plan/problem/set_up.h"
#include "plan/problem/window_loads.h"

#include <shardprop/graph/graph.h>
#include <shardprop/mesh/topology.h>
#include <shardprop/plan/demanded_shardings.h>
#include <shardprop/plan/plan.h>
#include <shardprop/plan/plan_options.h>
#include <shardprop/redistribute/planner.h>
#include <shardprop/strategy/layout_table.h>
#include <shardprop/strategy/op_cost.h>

#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace shardprop {

class EqualChoices;   // equal_choices.h
class TransferCosts;  // transfer_costs.h

struct ProblemData {
  ProblemData(const Graph& the_graph, DeviceMesh the_mesh,
              Topology the_topology, PlanOptions the_options,
              const SetUp& the_set_up, RedistributePlanner planner,
              RedistributePlanner bucketed);
  ~ProblemData();

  // The copy is the data of a problem with fewer choices
  // (restricted_problem.h). It shares the tables that do not depend on choices.
  ProblemData(const ProblemData& other);
  ProblemData(ProblemData&& other) noexcept;
  ProblemData& operator=(const ProblemData&) = delete;

  // Error: kStopped.
  Result<void> check_stop() const {
    if (const auto cause = set_up.budget.cut_off()) {
      return fail(set_up_cut_off(*cause));
    }
    return {};
  }

  // Like PlanProblem's, for a value whose tensor and hideable are known.
  std::int64_t move_nanoseconds(const PlanValue& value, LayoutId src,
                                LayoutId dst) const;
  std::int64_t overlappable_nanoseconds(const PlanValue& value, LayoutId src,
                                        LayoutId dst) const;
  // The result is a multiple of divided_micro_batches(). So each micro-batch has
  // the same part of it, and the parts of several transfers add up to the part of
  // their sum.
  std::int64_t overlappable_share(const PlanValue& value,
                                  std::int64_t transfer) const {
    if (!value.overlappable) return 0;
    const std::int64_t share =
        saturated(static_cast<double>(transfer) * options.overlap);
    return share - share % divided_micro_batches(options.accumulate);
  }
  WindowLoads window_loads() const {
    return {windows.size(), divided_micro_batches(options.accumulate)};
  }

  // Returns the share of one micro-batch in the time of an update, rounded down.
  std::int64_t share_of_step(std::int64_t nanoseconds) const {
    return nanoseconds / options.accumulate;
  }
  std::int64_t cut_nanoseconds(const PlanBuffer& buffer, const PlanValue& value,
                               LayoutId src, LayoutId dst) const;

  // Prices holds the layouts of a problem and the costs of redistributions
  // between them.
  struct Prices;

  const Graph& graph;
  DeviceMesh mesh;
  Topology topology;
  PlanOptions options;
  SetUp set_up;
  Windows windows;
  std::shared_ptr<Prices> prices;
  LayoutTable& layouts;
  TransferCosts& moves;
  std::vector<PlanVariable> variables;
  std::vector<PlanVariableId> of_node;
  std::vector<std::shared_ptr<const ChoiceSet>> choices_of_node;
  std::vector<PlanValue> values;
  std::vector<PlanBuffer> buffers;
  std::shared_ptr<const DimRoles> roles;
  std::vector<Recipe> known_recipes;
  std::vector<PinnedValues::Count> pinned;  // by pin
  std::shared_ptr<const FusionGroups> fusion;
  std::shared_ptr<const EqualChoices> equal_choices;
  DemandedShardings demanded_shardings;  // empty for given choices
  // By value, for given choices only: the layouts of its copies.
  std::vector<std::vector<LayoutId>> copied_to;
};

}  // namespace shardprop

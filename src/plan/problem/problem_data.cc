#include "plan/problem/problem_data.h"

namespace shardprop {

// These members are here and not in the header, since their code is large.

ProblemData::ProblemData(const Graph& the_graph, DeviceMesh the_mesh,
                         Topology the_topology, PlanOptions the_options,
                         const SetUp& the_set_up, RedistributePlanner planner,
                         RedistributePlanner bucketed)
    : graph(the_graph),
      mesh(std::move(the_mesh)),
      topology(std::move(the_topology)),
      options(std::move(the_options)),
      set_up(the_set_up),
      windows(the_graph.nodes().size()),
      prices(std::make_shared<Prices>(std::move(planner), std::move(bucketed),
                                      topology, !set_up.space.is_named())) {}

ProblemData::ProblemData(const ProblemData& other) = default;
ProblemData::ProblemData(ProblemData&& other) noexcept = default;
ProblemData::~ProblemData() = default;

ProblemData::Prices::Prices(RedistributePlanner planner,
                            RedistributePlanner bucketed,
                            const Topology& topology, bool merge)
    : moves(std::move(planner), std::move(bucketed), topology, layouts, merge) {
}
ProblemData::Prices::~Prices() = default;

}  // namespace shardprop

#include "plan/problem/problem_data.h"

#include "base/saturating.h"
#include "plan/problem/transfer_costs.h"

namespace shardprop {

struct ProblemData::Prices {
  Prices(RedistributePlanner planner, RedistributePlanner bucketed,
         const Topology& topology, bool merge)
      : moves(std::move(planner), std::move(bucketed), topology, layouts,
              merge) {}
  LayoutTable layouts;
  TransferCosts moves;
};

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
                                      topology, !set_up.space.is_named())),
      layouts(prices->layouts),
      moves(prices->moves) {}

ProblemData::ProblemData(const ProblemData& other) = default;
ProblemData::ProblemData(ProblemData&& other) noexcept = default;
ProblemData::~ProblemData() = default;

std::int64_t ProblemData::move_nanoseconds(const PlanValue& value, LayoutId src,
                                           LayoutId dst) const {
  const std::int64_t transfer = moves.nanoseconds(value.tensor, src, dst);
  if (transfer >= kUnreachable) return kUnreachable;
  return transfer - overlappable_share(value, transfer);
}

std::int64_t ProblemData::overlappable_nanoseconds(const PlanValue& value,
                                                   LayoutId src,
                                                   LayoutId dst) const {
  const std::int64_t transfer = moves.nanoseconds(value.tensor, src, dst);
  return transfer >= kUnreachable ? 0 : overlappable_share(value, transfer);
}

std::int64_t ProblemData::cut_nanoseconds(const PlanBuffer& buffer,
                                          const PlanValue& value, LayoutId src,
                                          LayoutId dst) const {
  if (!buffer.inside_kernel || src == dst) return 0;
  const auto bytes = static_cast<double>(moves.local_bytes(value.tensor, src)) +
                     static_cast<double>(moves.local_bytes(value.tensor, dst));
  return sat_add(launch_nanoseconds(topology),
                 traffic_nanoseconds(topology, bytes));
}

}  // namespace shardprop

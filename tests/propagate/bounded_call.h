// One call with the context of a search for its strategy.
#pragma once

#include "propagate/assignment_bounds.h"
#include "propagate/fixtures.h"

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace shardprop::testing {

inline constexpr std::int64_t kNoMove =
    std::numeric_limits<std::int64_t>::max();

// BoundedCall is one call on one mesh with everything that a search for its
// strategy refers to.
struct BoundedCall {
  BoundedCall(std::string_view mesh_text, const OpSchema& op,
              std::vector<Layout> inputs, double devices_per_node = 2)
      : mesh(value_of(DeviceMesh::parse(mesh_text))),
        topology(nodes_of(devices_per_node)),
        planner(value_of(RedistributePlanner::create(mesh, topology, {}))),
        bound(topology, mesh),
        bound_op(value_of(bind_op(*shared_library(), mesh, op))),
        given(std::move(inputs)),
        needs(*bound_op.space, given),
        written(given.size(), false) {}

  static Topology nodes_of(double devices_per_node) {
    Topology topology = default_topology();
    topology.devices_per_node.value = devices_per_node;
    return topology;
  }
  AssignmentBounds bounds() {
    return {context, bound_op, given, needs, written};
  }
  OperandMoves moves(std::size_t input, std::span<const Placement> partials,
                     redistribute::Reach::Orders orders) {
    return {planner,  recent, given[input], bound_op.op->inputs[input],
            partials, orders};
  }

  // The exact cost of moving all inputs to `operands`; kNoMove if one cannot.
  std::int64_t moved(std::span<const Layout> operands) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < given.size(); ++i) {
      const auto cost =
          planner.cost(given[i], operands[i], bound_op.op->inputs[i]);
      if (!cost) return kNoMove;
      sum += *cost;
    }
    return sum;
  }

  DeviceMesh mesh;
  Topology topology;
  CachingPlanner planner;
  MoveBound bound;
  redistribute::RecentReaches recent;
  BoundOp bound_op;
  std::vector<Layout> given;
  OperandNeeds needs;
  std::vector<bool> written;
  SearchContext context{mesh, topology, planner, bound, recent};
};

}  // namespace shardprop::testing

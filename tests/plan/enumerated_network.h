// Every assignment of a network that is not forbidden, one after the other.
#pragma once

#include "plan/network/plan_network.h"

#include <shardprop/solver/problem.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace shardprop::test {

class EnumeratedNetwork {
 public:
  // `network` must outlive the object.
  explicit EnumeratedNetwork(const PlanNetwork& network)
      : network_(network), before_(network.network().num_variables()) {
    for (const solver::Edge& edge : network.network().edges()) {
      const std::size_t a = edge.a.index();
      const std::size_t b = edge.b.index();
      before_[std::max(a, b)].push_back(&edge);
    }
  }

  // Calls visit(assignment, cost) for each. False if there are more than `most`.
  template <class Visit>
  bool each(std::size_t most, const Visit& visit) {
    choices_.assign(before_.size(), 0);
    left_ = most;
    return from(0, 0, visit);
  }

 private:
  // What the edges between this variable and earlier ones cost; kForbidden if
  // one of them is forbidden.
  std::int64_t edges_of(std::size_t v) const {
    std::int64_t sum = 0;
    for (const solver::Edge* edge : before_[v]) {
      const solver::Table table = network_.network().table(edge->table);
      const std::int64_t cost =
          table.costs[choices_[edge->a.index()] * table.columns +
                      choices_[edge->b.index()]];
      if (solver::is_forbidden(cost)) return solver::kForbidden;
      sum += cost;
    }
    return sum;
  }

  template <class Visit>
  bool from(std::size_t v, std::int64_t cost, const Visit& visit) {
    if (v == before_.size()) {
      if (left_-- == 0) return false;
      visit(choices_, cost);
      return true;
    }
    const auto costs = network_.network().costs(solver::VariableId(v));
    for (std::size_t c = 0; c < costs.size(); ++c) {
      choices_[v] = static_cast<std::uint32_t>(c);
      if (solver::is_forbidden(costs[c])) continue;
      const std::int64_t edges = edges_of(v);
      if (solver::is_forbidden(edges)) continue;
      if (!from(v + 1, cost + costs[c] + edges, visit)) return false;
    }
    return true;
  }

  const PlanNetwork& network_;
  std::vector<std::vector<const solver::Edge*>> before_;  // by later variable
  solver::Assignment choices_;
  std::size_t left_ = 0;
};

}  // namespace shardprop::test

// Every assignment of a network that is not forbidden, or that costs no more
// than so much, one after the other.
#pragma once

#include "plan/network/plan_network.h"

#include <shardprop/solver/problem.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
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
    least_from_.assign(before_.size() + 1, 0);
    for (std::size_t v = before_.size(); v-- > 0;) {
      least_from_[v] = least_from_[v + 1] + least_of(v);
    }
  }

  // Calls visit(assignment, cost) for each that costs at most `most_cost`.
  // False if there are more than `most`, or too many that begin like one.
  template <class Visit>
  bool each(std::size_t most, const Visit& visit,
            std::int64_t most_cost = std::numeric_limits<std::int64_t>::max()) {
    choices_.assign(before_.size(), 0);
    left_ = most;
    steps_left_ = kStepsForEach * most;
    most_cost_ = most_cost;
    return from(0, 0, visit);
  }

 private:
  static constexpr std::size_t kStepsForEach = 30;

  // The least that a choice costs, and with it each edge to earlier variables.
  std::int64_t least_of(std::size_t v) const {
    std::int64_t sum = least(network_.network().costs(solver::VariableId(v)));
    for (const solver::Edge* edge : before_[v]) {
      sum += least(network_.network().table(edge->table).costs);
    }
    return sum;
  }

  // 0 if all are forbidden, so that sums do not overflow.
  static std::int64_t least(std::span<const std::int64_t> costs) {
    const std::int64_t cost = *std::min_element(costs.begin(), costs.end());
    return solver::is_forbidden(cost) ? 0 : cost;
  }

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
    if (steps_left_-- == 0) return false;
    const auto costs = network_.network().costs(solver::VariableId(v));
    for (std::size_t c = 0; c < costs.size(); ++c) {
      choices_[v] = static_cast<std::uint32_t>(c);
      if (solver::is_forbidden(costs[c])) continue;
      const std::int64_t edges = edges_of(v);
      if (solver::is_forbidden(edges)) continue;
      const std::int64_t sum = cost + costs[c] + edges;
      if (sum + least_from_[v + 1] > most_cost_) continue;
      if (!from(v + 1, sum, visit)) return false;
    }
    return true;
  }

  const PlanNetwork& network_;
  std::vector<std::vector<const solver::Edge*>> before_;  // by later variable
  solver::Assignment choices_;
  std::vector<std::int64_t> least_from_;  // by variable: of it and later ones
  std::size_t left_ = 0;
  std::size_t steps_left_ = 0;
  std::int64_t most_cost_ = 0;
};

}  // namespace shardprop::test

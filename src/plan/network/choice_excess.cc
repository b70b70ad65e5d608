#include "plan/network/choice_excess.h"

#include <shardprop/solver/cost.h>

#include <cstdint>
#include <optional>

namespace shardprop {

ChoiceExcess::ChoiceExcess(const PlanProblem& problem,
                           const NetworkStructure& structure)
    : problem_(problem),
      structure_(structure),
      edges_(structure.variables.size()) {
  for (std::size_t e = 0; e < structure.edges.size(); ++e) {
    const NetworkEdge& edge = structure.edges[e];
    if (!structure.tables[edge.table].has_price()) continue;
    edges_[edge.a.index()].push_back(e);
    if (edge.b != edge.a) edges_[edge.b.index()].push_back(e);
  }
}

double ChoiceExcess::weighted(std::size_t window, std::int64_t nanoseconds,
                              const std::vector<double>& weight) const {
  double sum = 0;
  problem_.window_loads().divide(
      window, nanoseconds, [&](std::size_t load, std::int64_t part) {
        sum += weight[load] * static_cast<double>(part);
      });
  return sum;
}

std::vector<double> ChoiceExcess::of(std::size_t variable,
                                     const NetworkAssignment& a,
                                     const NetworkAssignment& b,
                                     const std::vector<double>& weight) const {
  const NetworkVariable& own = structure_.variables[variable];
  std::vector<double> sum(own.num_choices, 0);
  const WindowLoads loads = problem_.window_loads();
  for (const PlanVariableId id : own.of_problem) {
    const PlanVariable& of = problem_.variable(id);
    const ChoiceSet& choices = *of.choices;
    const bool is_operator = of.kind == PlanVariable::Kind::kOperator;
    if (!is_operator && choices.overlapped.empty()) continue;
    const std::optional<std::size_t> window =
        is_operator ? problem_.window_of(static_cast<std::int64_t>(of.index))
                    : problem_.window_after_update(of);
    if (!window) continue;
    for (std::size_t c = 0; c < sum.size(); ++c) {
      if (is_operator) {
        sum[c] -= weighted(*window, choices.compute[c], weight);
      } else {
        sum[c] += weight[loads.first(*window)] *
                  static_cast<double>(choices.overlapped[c]);
      }
    }
  }
  for (const std::size_t e : edges_[variable]) {
    const NetworkEdge& edge = structure_.edges[e];
    const NetworkTable& table = structure_.tables[edge.table];
    const auto at = [&](std::size_t row, std::size_t column) {
      const std::size_t entry = row * table.columns + column;
      double excess = 0;
      if (solver::is_forbidden(table.nanoseconds[entry])) return excess;
      for (const NetworkEdge::Share& share : edge.shares) {
        if (!share.window) continue;
        excess += static_cast<double>(share.count) *
                  (weighted(*share.window, table.overlappable[entry], weight) +
                   weight[loads.last(*share.window)] *
                       static_cast<double>(table.overlappable_once[entry]));
      }
      return excess;
    };
    const std::size_t first = edge.a.index();
    const std::size_t second = edge.b.index();
    for (std::size_t c = 0; c < sum.size(); ++c) {
      if (first == second) {
        sum[c] += at(c, c);
      } else if (first == variable) {
        sum[c] += (at(c, a[second]) + at(c, b[second])) / 2;
      } else {
        sum[c] += (at(a[first], c) + at(b[first], c)) / 2;
      }
    }
  }
  return sum;
}

}  // namespace shardprop

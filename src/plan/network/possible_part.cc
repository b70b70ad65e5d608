// PlanNetwork::possible_part().
#include "base/saturating.h"
#include "plan/network/plan_network.h"

#include <shardprop/solver/checker.h>
#include <shardprop/solver/possible_choices.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace shardprop {

PossiblePart PlanNetwork::possible_part(const NetworkOptions& options,
                                        std::int64_t target,
                                        const Budget& budget,
                                        solver::Messages& messages) {
  PossiblePart out;
  solver::SolveOptions how = solver_options(problem_, budget);
  how.messages = &messages;
  if (auto priced = price(options); !priced) {
    out.failure = std::move(priced).error();
    return out;
  }
  solver::PossibleChoices found =
      solver::possible_choices(*network_, target, how);
  out.work = found.work;
  out.bound = saturated(found.lower_bound);
  out.is_empty = found.choices.empty();
  if (out.is_empty) return out;
  out.decoded = assignment(std::move(found.decoded));
  out.left = options.left;
  for (std::size_t v = 0; v < found.choices.size(); ++v) {
    const std::vector<std::uint32_t>& kept = found.choices[v];
    if (kept.size() == out.decoded.num_choices(v)) continue;
    out.left.keep_if(out.decoded, v, [&](std::uint32_t choice) {
      return std::binary_search(kept.begin(), kept.end(), choice);
    });
  }
  const auto checked = solver::evaluate(*network_, choices(out.decoded));
  if (checked && checked->feasible()) {
    out.plan = decode(out.decoded);
    out.evaluation = evaluate(problem_, *out.plan);
  }
  return out;
}

std::uint64_t PlanNetwork::num_entries() const {
  std::uint64_t sum = 0;
  for (const NetworkEdge& edge : structure_.edges) {
    const NetworkTable& table = structure_.tables[edge.table];
    sum += table.rows * table.columns;
  }
  return sum;
}

}  // namespace shardprop

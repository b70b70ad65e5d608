#include <shardprop/solver/checker.h>

#include "base/quantities.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace shardprop::solver {

Result<Evaluation> evaluate(const Problem& problem,
                            std::span<const std::uint32_t> assignment) {
  if (assignment.size() != problem.num_variables()) {
    return fail(ErrorCode::kAssignmentShape,
                fmt::format("an assignment of {} for {}",
                            counted(assignment.size(), "choice"),
                            counted(problem.num_variables(), "variable")),
                "give one choice to each variable, in order");
  }
  Evaluation out;
  // Bytes that appear at a time, or vanish if negative. Intervals are
  // half-open, so bytes that end at a time make room for bytes that begin
  // there.
  std::vector<std::pair<std::int64_t, std::int64_t>> events;
  for (std::size_t i = 0; i < assignment.size(); ++i) {
    const VariableId v(i);
    const std::uint32_t choice = assignment[i];
    if (choice >= problem.num_choices(v)) {
      return fail(ErrorCode::kAssignmentShape,
                  fmt::format("variable {} has no choice {}", i, choice),
                  fmt::format("it has {}, counted from 0",
                              counted(problem.num_choices(v), "choice")));
    }
    const std::int64_t cost = problem.costs(v)[choice];
    if (is_forbidden(cost)) {
      out.forbidden.push_back(v);
    } else {
      out.cost += cost;
    }
    for (std::size_t u = 0; u < problem.num_usages(v); ++u) {
      const Usage usage = problem.usage(v, u);
      if (usage.when.empty() || usage.bytes[choice] == 0) continue;
      events.emplace_back(usage.when.lo, usage.bytes[choice]);
      events.emplace_back(usage.when.hi, -usage.bytes[choice]);
    }
  }
  for (std::size_t e = 0; e < problem.num_edges(); ++e) {
    const Edge& edge = problem.edge(EdgeId(e));
    const Table table = problem.table(edge.table);
    const std::int64_t cost =
        table.costs[assignment[edge.a.index()] * table.columns +
                    assignment[edge.b.index()]];
    if (is_forbidden(cost)) {
      out.forbidden_edges.emplace_back(e);
    } else {
      out.cost += cost;
    }
  }
  for (const Pin& pin : problem.pins()) {
    if (assignment[pin.variable.index()] != pin.choice) {
      out.broken_pins.push_back(pin);
    }
  }
  std::sort(events.begin(), events.end());
  Int128 bytes = 0;
  for (std::size_t i = 0; i < events.size();) {
    const std::int64_t time = events[i].first;
    for (; i < events.size() && events[i].first == time; ++i) {
      bytes += events[i].second;
    }
    if (bytes > out.peak_bytes) {
      out.peak_bytes = bytes;
      out.peak_time = time;
    }
  }
  out.over_limit =
      problem.limit().has_value() && out.peak_bytes > *problem.limit();
  return out;
}

}  // namespace shardprop::solver

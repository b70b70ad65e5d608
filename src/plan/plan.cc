#include <shardprop/plan/plan.h>

#include "base/saturating.h"

#include <array>

namespace shardprop {

std::string_view to_string(PlanStatus status) {
  switch (status) {
    case PlanStatus::kOptimal:
      return "optimal";
    case PlanStatus::kFeasible:
      return "feasible";
    case PlanStatus::kInfeasible:
      return "infeasible";
    case PlanStatus::kUnknown:
      return "unknown";
  }
  return "unknown";
}

std::optional<PlanStatus> parse_plan_status(std::string_view text) {
  for (const PlanStatus s : {PlanStatus::kOptimal, PlanStatus::kFeasible,
                             PlanStatus::kInfeasible, PlanStatus::kUnknown}) {
    if (to_string(s) == text) return s;
  }
  return std::nullopt;
}

std::int64_t PlannedCopy::nanoseconds() const {
  std::int64_t sum = 0;
  for (const PlannedStep& step : steps) sum = sat_add(sum, step.nanoseconds);
  return sum;
}

std::optional<double> Plan::gap() const {
  if (!objective_nanoseconds) return std::nullopt;
  if (*objective_nanoseconds == 0) return 0.0;
  return static_cast<double>(*objective_nanoseconds - lower_bound_nanoseconds) /
         static_cast<double>(*objective_nanoseconds);
}

PlanSummary summarize(const Plan& plan) {
  PlanSummary sum;
  sum.compute_nanoseconds = plan.optimizer_nanoseconds;
  const auto add = [&](const PlannedStep& step) {
    sum.communication_nanoseconds =
        sat_add(sum.communication_nanoseconds, step.nanoseconds);
    sum.bytes_per_rank = sat_add(sum.bytes_per_rank, step.bytes_per_rank);
    ++sum.collectives[static_cast<std::size_t>(step.collective)];
  };
  for (const PlannedCopy& copy : plan.copies) {
    for (const PlannedStep& step : copy.steps) add(step);
    sum.hidden_nanoseconds =
        sat_add(sum.hidden_nanoseconds, copy.hidden_nanoseconds);
  }
  for (const PlannedNode& node : plan.nodes) {
    sum.compute_nanoseconds =
        sat_add(sum.compute_nanoseconds, node.compute_nanoseconds);
    for (const PlannedStep& step : node.inside) add(step);
  }
  return sum;
}

std::string hash_text(std::uint64_t hash) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (std::size_t i = text.size(); i-- > 0; hash >>= 4) {
    text[i] = kDigits[hash & 15U];
  }
  return text;
}

}  // namespace shardprop

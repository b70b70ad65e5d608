// Plans a graph on two ranks: every graph that is read must allow a plan.
#pragma once

#include "fuzz_input.h"

#include <shardprop/plan/make_plan.h>
#include <shardprop/report/plan_json.h>
#include <shardprop/report/plan_text.h>

namespace shardprop {

// The limits admit mutations of a small graph and keep a fuzzer's runs short.
inline bool is_small(const Graph& graph) {
  return graph.nodes().size() <= 60 && graph.values().size() <= 200;
}

// Whether JSON, whose numbers are doubles of microseconds, keeps every time: it
// does up to 2^50 ns, which is 13 days.
inline bool has_exact_times(const Plan& plan) {
  constexpr std::int64_t kMost = std::int64_t{1} << 50;
  const auto is_exact = [](std::int64_t nanoseconds) {
    return nanoseconds > -kMost && nanoseconds < kMost;
  };
  bool all = is_exact(plan.summary.compute_nanoseconds) &&
             is_exact(plan.summary.communication_nanoseconds) &&
             is_exact(plan.lower_bound_nanoseconds);
  for (const PlannedCopy& copy : plan.copies) {
    const auto& other = copy.reason.alternative;
    all = all && is_exact(other ? other->nanoseconds : 0);
  }
  return all;
}

inline void require_plan(const Graph& graph, const Topology& topology,
                         const OpLibrary& library) {
  PlanOptions options;
  options.time_limit_seconds = 1;
  options.work_limit = 100'000;
  options.memory_limit = topology.allocatable_bytes();
  const Result<Plan> plan =
      make_plan(graph, *DeviceMesh::parse("2"), topology, library, options);
  if (!plan) return require_reason(plan);
  require(!plan_to_text(*plan).empty());
  if (!has_exact_times(*plan)) return;
  const Result<Plan> again = parse_plan_json(plan_to_json(*plan));
  require(again.has_value() && *again == *plan);
}

}  // namespace shardprop

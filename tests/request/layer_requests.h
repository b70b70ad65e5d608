// Requests for plans of BlockModel, and what their answers say about the rules of
// recomputation.
#pragma once

#include "graph/block_model.h"
#include "support/result_checks.h"

#include <doctest/doctest.h>
#include <shardprop/request/plan_request.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace shardprop {

inline std::string rule_of(const Plan& plan) {
  const auto found = std::find_if(
      plan.options.begin(), plan.options.end(),
      [](const auto& option) { return option.first == "recompute"; });
  return found == plan.options.end() ? std::string() : found->second;
}

inline const RecomputeRulesNote* rules_of(const Plan& plan) {
  for (const PlanNote& note : plan.notes) {
    if (const auto* rules = std::get_if<RecomputeRulesNote>(&note))
      return rules;
  }
  return nullptr;
}

inline PlanRequest request_of_layers(const std::string& rule,
                                     const std::string& memory,
                                     const std::string& layers = "dddddd",
                                     const std::string& work = "100000000") {
  PlanRequest request;
  request.graph = std::make_shared<const Graph>(BlockModel(true).build(layers));
  request.library = OpLibrary::standard();
  request.mesh = testing::value_of(planned_mesh("dp=2"));
  request.topology = default_topology();
  request.options = testing::value_of(
      plan_options(std::vector<GivenOption>{{"recompute", rule, {}},
                                            {"execution", "eager", {}},
                                            {"work_limit", work, {}},
                                            {"memory", memory, {}}},
                   request.topology));
  request.options.gap = 0;
  return request;
}

inline PlannedGraph planned_layers(const std::string& rule,
                                   const std::string& memory,
                                   const std::string& layers = "dddddd",
                                   const std::string& work = "100000000") {
  return testing::value_of(
      plan_graph(request_of_layers(rule, memory, layers, work)));
}

inline std::int64_t peak_of_layers(const std::string& rule,
                                   const std::string& layers = "dddddd") {
  return planned_layers(rule, "none", layers).plan.memory.peak_bytes;
}

inline std::set<std::string> tried_rules(const Plan& plan) {
  std::set<std::string> out;
  const RecomputeRulesNote* rules = rules_of(plan);
  if (rules == nullptr) return out;
  for (const RecomputeRulesNote::Tried& tried : rules->tried) {
    CHECK(out.insert(tried.rule).second);
  }
  return out;
}

// Returns a limit in which the search finds a plan of the rule, in steps of 5 %.
inline std::int64_t least_of_layers(const std::string& rule) {
  const Plan plan = planned_layers(rule, "1KiB").plan;
  REQUIRE(plan.status == PlanStatus::kInfeasible);
  REQUIRE(plan.conflict.memory.size() == 1);
  std::int64_t bytes = (1 << 10) + plan.conflict.memory.front().bytes_short;
  for (int i = 0; i < 100; ++i, bytes += bytes / 20) {
    if (planned_layers(rule, std::to_string(bytes)).plan.has_plan()) break;
  }
  return bytes;
}

// Returns a limit in which some numbers of blocks have plans, and `none` has none.
inline std::int64_t limit_for_counts() {
  static const std::int64_t limit =
      (least_of_layers("full") + least_of_layers("none")) / 2;
  return limit;
}

// Returns limits of memory. Not all rules have plans within the first ones.
inline std::vector<std::int64_t> tight_limits() {
  return {least_of_layers("full"), limit_for_counts(), peak_of_layers("full:4"),
          peak_of_layers("none") - 1, peak_of_layers("none") * 9 / 10};
}

}  // namespace shardprop

// What holds of every plan, worked out anew from the plan alone.
#pragma once

#include <doctest/doctest.h>
#include <shardprop/plan/plan.h>

#include <map>
#include <set>
#include <string>
#include <utility>

namespace shardprop::test {

inline void check_plan(const Plan& plan) {
  REQUIRE(plan.has_plan());
  std::map<std::string, Layout> made;
  for (const PlannedValue& value : plan.values) {
    made[value.name] = value.tensor.layout;
  }
  std::int64_t compute = plan.optimizer_nanoseconds;
  std::int64_t communication = 0;
  std::int64_t hidden = 0;
  std::set<std::pair<std::string, std::string>> copies;
  for (const PlannedCopy& copy : plan.copies) {
    // One copy of a value in a layout, and never of the layout it is made in.
    CHECK(copies.emplace(copy.from, to_string(copy.dst)).second);
    CHECK(!(copy.src == copy.dst));
    CHECK(copy.made_at <= copy.freed_at);
    CHECK(!copy.reason.empty());
    for (const PlannedStep& step : copy.steps)
      communication += step.nanoseconds;
    hidden += copy.hidden_nanoseconds;
  }
  const auto check_input = [&](const PlannedInput& input, std::int64_t at) {
    CAPTURE(input.from);
    REQUIRE(made.contains(input.from));
    if (!input.copy) {
      CHECK(input.layout == made[input.from]);
      return;
    }
    REQUIRE(*input.copy < plan.copies.size());
    const PlannedCopy& copy = plan.copies[*input.copy];
    CHECK(copy.from == input.from);
    CHECK(copy.src == made[input.from]);
    CHECK(copy.dst == input.layout);
    CHECK(copy.made_at <= at);
    CHECK(at <= copy.freed_at);
  };
  for (std::size_t n = 0; n < plan.nodes.size(); ++n) {
    const PlannedNode& node = plan.nodes[n];
    for (const PlannedInput& input : node.inputs) {
      check_input(input, static_cast<std::int64_t>(n));
    }
    for (const PlannedResult& result : node.outputs) {
      made[result.name] = result.tensor.layout;
    }
    compute += node.compute_nanoseconds;
    for (const PlannedStep& step : node.inside) {
      communication += step.nanoseconds;
    }
  }
  for (const PlannedOutput& output : plan.outputs) {
    check_input(output.value, static_cast<std::int64_t>(plan.nodes.size()));
    CHECK_FALSE(output.value.layout.has_partial());
    if (!output.target.empty()) {
      CHECK(output.value.layout == made[output.target]);
    }
  }
  CHECK(*plan.objective_nanoseconds == compute + communication - hidden);
  CHECK(plan.summary.compute_nanoseconds == compute);
  CHECK(plan.summary.communication_nanoseconds == communication);
  CHECK(plan.lower_bound_nanoseconds <= *plan.objective_nanoseconds);
  if (plan.memory.limit_bytes) {
    CHECK(plan.memory.peak_bytes <= *plan.memory.limit_bytes);
  }
  const bool proven =
      plan.lower_bound_nanoseconds == *plan.objective_nanoseconds;
  CHECK((plan.status == PlanStatus::kOptimal) <= proven);
}

}  // namespace shardprop::test

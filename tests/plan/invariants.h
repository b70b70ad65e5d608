// What holds of every plan, worked out anew from the plan alone.
#pragma once

#include <doctest/doctest.h>
#include <shardprop/plan/plan.h>

#include <algorithm>
#include <map>
#include <string>

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
  for (std::size_t c = 0; c < plan.copies.size(); ++c) {
    const PlannedCopy& copy = plan.copies[c];
    CAPTURE(c);
    CHECK(copy.made_at <= copy.freed_at);
    CHECK(!copy.reason.empty());
    if (copy.source) {
      REQUIRE(*copy.source < plan.copies.size());
      const PlannedCopy& source = plan.copies[*copy.source];
      CHECK(source.made_at <= copy.made_at);
      CHECK(copy.made_at <= source.freed_at);
      if (copy.steps.empty()) CHECK(copy.src == copy.dst);
    }
    CHECK((copy.src == copy.dst) == copy.steps.empty());
    // Never two of a value in a layout at once, seen as such or moved to it.
    for (std::size_t other = 0; other < c; ++other) {
      const PlannedCopy& before = plan.copies[other];
      if (before.from == copy.from && before.dst == copy.dst &&
          !before.steps.empty() && !copy.steps.empty()) {
        CHECK(
            (before.freed_at < copy.made_at || copy.freed_at < before.made_at));
      }
    }
    for (const CollectiveStep& step : copy.steps)
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
    // A copy that is seen as another value lies as it says itself.
    if (!copy.steps.empty()) {
      CHECK(copy.src ==
            (copy.source ? plan.copies[*copy.source].dst : made[input.from]));
    }
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
    for (const CollectiveStep& step : node.inside) {
      communication += step.nanoseconds;
    }
  }
  for (const PlannedOutput& output : plan.outputs) {
    check_input(output.value, static_cast<std::int64_t>(plan.nodes.size()));
    CHECK_FALSE(output.value.layout.has_partial());
    if (output.target.empty()) continue;
    const auto target = std::find_if(
        plan.values.begin(), plan.values.end(),
        [&](const PlannedValue& v) { return v.name == output.target; });
    REQUIRE(target != plan.values.end());
    CHECK(output.value.layout ==
          (output.kind == "gradient"
               ? target->state_layout.value_or(target->tensor.layout)
               : target->tensor.layout));
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
  CHECK((plan.status == PlanStatus::kOptimal) ==
        (proven && plan.unsupported.empty()));
}

}  // namespace shardprop::test

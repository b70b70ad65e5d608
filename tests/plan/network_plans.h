// NetworkPlans judges the plans of all assignments of a plan network. A test compares
// them with the answer of a search.
#pragma once

#include "plan/enumerated_network.h"
#include "plan/evaluate/plan_assignment.h"
#include "plan/network/plan_network.h"
#include "plan/problem/plan_problem.h"

#include <doctest/doctest.h>
#include <shardprop/solver/checker.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace shardprop::test {

// Checks that a network charges no plan more than its cost and bytes, and finds the
// least cost.
class NetworkPlans {
 public:
  NetworkPlans(const PlanProblem& problem, const PlanNetwork& network,
               std::optional<std::int64_t> limit, std::size_t most_assignments)
      : problem_(problem),
        network_(network),
        limit_(limit),
        most_assignments_(most_assignments) {}

  // Judges the plans of all assignments that cost at most `most_cost`. No plan that
  // costs less is left out. Returns false if there are more than most_assignments_
  // assignments, so that the least cost is not known.
  bool run(std::int64_t most_cost) {
    const bool is_complete = EnumeratedNetwork(network_).each(
        most_assignments_,
        [&](const solver::Assignment& choices, std::int64_t cost) {
          judge(choices, cost);
        },
        most_cost);
    if (!is_complete) return false;
    CHECK(broken_ == 0);
    // A plan may cost less than its assignment: a copy that nothing reads is not
    // made.
    CHECK(more_expensive_ == 0);
    if (limit_) check_bytes();
    return true;
  }

  // Of plans within the limit; null if none is.
  std::optional<std::int64_t> least_cost() const { return least_cost_; }

 private:
  static constexpr std::int64_t kMost =
      std::numeric_limits<std::int64_t>::max();

  // A plan as it is judged, and the fewest bytes that the network counts for one
  // of its assignments.
  struct OfPlan {
    std::int64_t objective = 0;
    std::int64_t judged_bytes = 0;
    std::int64_t counted_bytes = kMost;
  };

  // Bytes are counted from below: for each plan there is an assignment whose plan
  // costs no more and whose bytes the network counts as no more. (A copy that is
  // only the source of another may be freed earlier than the assignment says.)
  void check_bytes() const {
    // By judged bytes: the least cost of the assignments that count no more.
    std::map<std::int64_t, std::int64_t> least;
    for (const auto& [plan, of_plan] : plans_) {
      const auto [at, is_new] =
          least.try_emplace(of_plan.counted_bytes, of_plan.objective);
      if (!is_new) at->second = std::min(at->second, of_plan.objective);
    }
    std::int64_t best = kMost;
    for (auto& [bytes, cost] : least) cost = best = std::min(best, cost);
    int lost = 0;
    for (const auto& [plan, of_plan] : plans_) {
      const auto after = least.upper_bound(of_plan.judged_bytes);
      const bool is_covered = after != least.begin() &&
                              std::prev(after)->second <= of_plan.objective;
      lost += is_covered ? 0 : 1;
    }
    CHECK(lost == 0);
  }

  // Equal for equal plans only.
  static std::vector<std::int64_t> key_of(const PlanAssignment& plan) {
    std::vector<std::int64_t> key(plan.choices.begin(), plan.choices.end());
    for (const AssignedCopy& copy : plan.copies) {
      key.insert(
          key.end(),
          {static_cast<std::int64_t>(copy.buffer.index()), copy.state,
           copy.value,
           static_cast<std::int64_t>(copy.source.value_or(plan.copies.size())),
           copy.produced_at, copy.freed_at});
    }
    for (const auto& of_buffer : plan.read) {
      for (const auto& copy : of_buffer) {
        key.push_back(
            static_cast<std::int64_t>(copy.value_or(plan.copies.size())));
      }
    }
    return key;
  }

  void judge(const solver::Assignment& choices, std::int64_t cost) {
    const PlanAssignment plan = network_.decode(network_.assignment(choices));
    const PlanEvaluation judged = evaluate(problem_, plan);
    broken_ += judged.broken.empty() ? 0 : 1;
    more_expensive_ +=
        judged.objective - judged.exposed() - judged.waited > cost ? 1 : 0;
    OfPlan& of_plan = plans_[key_of(plan)];
    of_plan.objective = judged.objective;
    of_plan.judged_bytes = judged.peak_bytes;
    of_plan.counted_bytes = std::min(
        of_plan.counted_bytes,
        static_cast<std::int64_t>(
            solver::evaluate(network_.network(), choices)->peak_bytes));
    if (limit_ && judged.peak_bytes > *limit_) return;
    least_cost_ =
        std::min(least_cost_.value_or(judged.objective), judged.objective);
  }

  const PlanProblem& problem_;
  const PlanNetwork& network_;
  std::optional<std::int64_t> limit_;
  std::size_t most_assignments_;
  int broken_ = 0;
  int more_expensive_ =
      0;  // than the network says, which knows no exposed time
  std::map<std::vector<std::int64_t>, OfPlan> plans_;
  std::optional<std::int64_t> least_cost_;
};

}  // namespace shardprop::test

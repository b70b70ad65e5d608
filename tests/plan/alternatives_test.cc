// Alternatives that AlternativeCosts prices. The best plan that is forced to do
// without the copy costs no more.
#include "plan/explain/alternatives.h"

#include "plan/alternative_plans.h"
#include "plan/enumerated_network.h"
#include "plan/network/plan_network.h"
#include "plan/search/solve_plan.h"
#include "plan/training_graphs.h"
#include "support/property.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>

namespace shardprop {
namespace {

using testing::value_of;

// The least cost of plans in which the user of a copy reads the value in
// another layout; empty if none does.
std::optional<std::int64_t> least_without(const PlanProblem& problem,
                                          const PlanAssignment& plan,
                                          const BufferUse& use,
                                          const PlanNetwork& network,
                                          std::size_t most, bool& complete) {
  const std::size_t user = network.variable(use.variable).index();
  const ChoiceSet& set = *problem.variable(use.variable).choices;
  const LayoutId not_required =
      set.layout(plan.choices[use.variable.index()], use.operand);
  std::optional<std::int64_t> least;
  complete = test::EnumeratedNetwork(network).each(
      most, [&](const solver::Assignment& choices, std::int64_t) {
        if (set.layout(choices[user], use.operand) == not_required) return;
        const std::int64_t cost =
            evaluate(problem, network.decode(network.assignment(choices)))
                .objective;
        least = std::min(least.value_or(cost), cost);
      });
  return least;
}

// It takes 40 alternatives every day, 400 with SHARDPROP_FULL=1.
TEST_CASE("an alternative costs no less than the best plan that is forced") {
  std::mt19937 draw(56);
  constexpr std::size_t kMostAssignments = 20'000;
  const int required = testing::full_counts() ? 400 : 40;
  int counted = 0;
  int exact = 0;
  for (int i = 0; counted < required && i < 50 * required; ++i) {
    CAPTURE(i);
    const Graph graph = test::random_training_graph(draw, {1 + i % 3});
    test::TrainingSettings settings = test::random_settings(draw);
    settings.mesh = "2";
    const PlanProblem problem = test::problem_with(graph, settings);
    const PlanNetwork network = value_of(PlanNetwork::create(problem, {}));
    const PlanSolution solution = solve_plan(problem);
    REQUIRE(solution.assignment);
    if (solution.status != PlanStatus::kOptimal) continue;
    const PlanAssignment& plan = *solution.assignment;
    const auto users = users_of_copies(problem, plan);
    const AlternativeCosts alternatives(problem, plan, solution.lower_bound);
    for (std::size_t c = 0; c < plan.copies.size(); ++c) {
      const auto other = alternatives.without(c);
      if (!other) continue;
      CHECK(other->nanoseconds >= 0);
      bool complete = true;
      const auto least = least_without(problem, plan, users[c].uses[0], network,
                                       kMostAssignments, complete);
      if (!complete) break;
      ++counted;
      REQUIRE(least);
      const std::int64_t forced = *least - solution.evaluation.objective;
      CHECK(other->nanoseconds >= forced);
      exact += other->nanoseconds == forced ? 1 : 0;
    }
  }
  MESSAGE(counted << " alternatives, " << exact
                  << " cost as much as the best plan that is forced");
  CHECK(counted >= required);
  CHECK(3 * exact > counted);
}

// It takes 200 alternatives every day, 4,000 with SHARDPROP_FULL=1.
TEST_CASE("an alternative costs what one of its plans costs") {
  std::mt19937 draw(static_cast<std::uint32_t>(testing::property_seed()));
  constexpr std::size_t kMostPlans = 4'000;  // of one alternative
  const int required = testing::scaled(200);
  int counted = 0;
  for (int i = 0; counted < required && i < 5 * required; ++i) {
    CAPTURE(i);
    const Graph graph = test::random_training_graph(draw, {1 + i % 3});
    test::TrainingSettings settings = test::random_settings(draw);
    settings.options.accumulate = 2 + i % 7;
    settings.mesh = i % 2 == 0 ? "2" : "2,2";
    const PlanProblem problem = test::problem_with(graph, settings);
    const PlanSolution solution = solve_plan(problem);
    if (!solution.assignment) continue;
    const PlanAssignment& plan = *solution.assignment;
    const auto users = users_of_copies(problem, plan);
    const AlternativeCosts alternatives(problem, plan, solution.lower_bound);
    for (std::size_t c = 0; c < plan.copies.size(); ++c) {
      const auto other = alternatives.without(c);
      if (!other) continue;
      CAPTURE(c);
      CAPTURE(other->nanoseconds);
      bool is_found = false;
      const bool complete =
          test::AlternativePlans(problem, plan)
              .each(users[c].uses[0].variable, other->choice, kMostPlans,
                    [&](const PlanAssignment& named) {
                      const PlanEvaluation judged = evaluate(problem, named);
                      is_found =
                          is_found ||
                          (judged.broken.empty() &&
                           judged.objective - solution.evaluation.objective ==
                               other->nanoseconds);
                    });
      if (!complete && !is_found) continue;
      ++counted;
      CHECK(is_found);
    }
  }
  CHECK(counted >= required);
}

}  // namespace
}  // namespace shardprop

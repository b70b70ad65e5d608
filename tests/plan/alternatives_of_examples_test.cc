// The alternatives that plans of the example graphs name: each costs as much as
// evaluate() says of a plan that it names, and no less than the best plan that is
// forced to do without the copy.
#include "plan/alternative_plans.h"
#include "plan/search/parts/restricted_problem.h"
#include "plan/search/solve_plan.h"
#include "plan/training_graphs.h"
#include "support/property.h"

#include <shardprop/io/load_graph.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

constexpr std::size_t kMostPlans = 4'000;     // of one alternative
constexpr std::size_t kMostOfOneProblem = 6;  // alternatives
constexpr std::uint64_t kWorkOfPlan = 20'000'000;
constexpr std::uint64_t kWorkOfForced = 100'000'000;

std::vector<std::string> example_paths() {
  std::vector<std::string> out;
  for (const auto& entry :
       std::filesystem::directory_iterator("examples/graphs/tiny")) {
    const std::string path = entry.path().string();
    if (path.ends_with(".json.gz")) out.push_back(path);
  }
  std::sort(out.begin(), out.end());
  return out;
}

// Counts has the numbers of checked alternatives.
struct Checked {
  int alternatives = 0;
  int cheapest = 0;  // no plan with the same choice costs less
  int proven = 0;    // the forced optimum is known
  int exact = 0;     // and the alternative costs as much
};

// Checks that one of the plans with the choice of the alternative costs as much
// as it says.
void check_price(const PlanProblem& problem, const PlanAssignment& plan,
                 const BufferUse& use, const Alternative& other,
                 std::int64_t objective, Checked& checked) {
  bool is_found = false;
  std::int64_t least = std::int64_t{1} << 60;  // above every cost
  std::int64_t nearest = least;
  const bool complete =
      test::AlternativePlans(problem, plan)
          .each(use.variable, other.choice, kMostPlans,
                [&](const PlanAssignment& named) {
                  const PlanEvaluation judged = evaluate(problem, named);
                  if (!judged.broken.empty()) return;
                  const std::int64_t more = judged.objective - objective;
                  is_found = is_found || more == other.nanoseconds;
                  least = std::min(least, more);
                  if (std::abs(more - other.nanoseconds) <
                      std::abs(nearest - other.nanoseconds)) {
                    nearest = more;
                  }
                });
  CAPTURE(other.nanoseconds);
  CAPTURE(nearest);
  CAPTURE(complete);
  CHECK(is_found);
  checked.cheapest += least == other.nanoseconds ? 1 : 0;
}

// Checks that the alternative costs no less than the best plan in which the user
// reads another layout.
void check_bound(const PlanProblem& problem, const BufferUse& use,
                 LayoutId not_required, std::int64_t cost, Checked& checked) {
  Restriction others = no_restriction(problem);
  const ChoiceSet& set = *problem.variable(use.variable).choices;
  for (std::uint32_t c = 0; c < set.size(); ++c) {
    if (set.layout(c, use.operand) == not_required) continue;
    others.left[use.variable.index()].push_back(c);
  }
  const RestrictedProblem forced(problem, others);
  const PlanSolution solution = solve_plan(
      forced.problem(), Budget(BudgetLimits{.work = kWorkOfForced}),
      {.break_ties = false, .first_plans = false, .explains = false});
  CHECK(cost >= solution.lower_bound);
  if (solution.status != PlanStatus::kOptimal) return;
  ++checked.proven;
  checked.exact += cost == solution.evaluation.objective ? 1 : 0;
}

// 25 alternatives every day, 500 with SHARDPROP_FULL=1.
TEST_CASE("each alternative of an example costs what its plan costs") {
  std::mt19937 draw(static_cast<std::uint32_t>(testing::property_seed()));
  const std::vector<std::string> paths = example_paths();
  const int required = testing::scaled(25);
  Checked checked;
  for (int i = 0; checked.alternatives < required && i < 20 * required; ++i) {
    const std::string& path = paths[draw() % paths.size()];
    CAPTURE(path);
    CAPTURE(i);
    const Graph graph = value_of(load_graph(path, testing::standard_library()));
    test::TrainingSettings settings = test::random_settings(draw);
    // An alternative changes one operator of one layer.
    settings.options.layers = Layers::kFree;
    settings.mesh = std::array{"2", "4", "2,2", "dp=2,tp=4"}[draw() % 4];
    CAPTURE(settings.mesh);
    const PlanProblem problem = test::problem_with(graph, settings);
    const PlanSolution solution =
        solve_plan(problem, Budget(BudgetLimits{.work = kWorkOfPlan}),
                   {.break_ties = false, .explains = false});
    if (!solution.assignment) continue;
    const PlanAssignment& plan = *solution.assignment;
    const std::int64_t objective = solution.evaluation.objective;
    const AlternativeCosts alternatives(problem, plan, solution.lower_bound);
    const auto users = users_of_copies(problem, plan);
    std::vector<std::size_t> copies(plan.copies.size());
    std::iota(copies.begin(), copies.end(), std::size_t{0});
    std::shuffle(copies.begin(), copies.end(), draw);
    std::size_t of_problem = 0;
    for (const std::size_t c : copies) {
      const auto other = alternatives.without(c);
      if (!other) continue;
      CAPTURE(c);
      const BufferUse& use = users[c].uses[0];
      check_price(problem, plan, use, *other, objective, checked);
      const LayoutId now =
          problem.variable(use.variable)
              .choices->layout(plan.choices[use.variable.index()], use.operand);
      CHECK(other->layout != now);
      check_bound(problem, use, now, objective + other->nanoseconds, checked);
      ++checked.alternatives;
      if (++of_problem == kMostOfOneProblem) break;
    }
  }
  MESSAGE(checked.alternatives
          << " alternatives; " << checked.cheapest
          << " are the cheapest way of their choice; of " << checked.proven
          << " with a proven forced optimum, " << checked.exact << " equal it");
  CHECK(checked.alternatives >= required);
  CHECK(2 * checked.proven > checked.alternatives);
}

}  // namespace
}  // namespace shardprop

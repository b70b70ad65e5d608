// Layers of matmuls whose optimum overlaps transfers in each way that has a
// price, against enumeration.
#include "plan/exhaustive.h"
#include "plan/exhaustive_windows.h"
#include "plan/layered_training.h"
#include "plan/plan_features.h"
#include "plan/search/solve_plan.h"
#include "plan/training_graphs.h"
#include "support/property.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <string>

namespace shardprop {
namespace {

TEST_CASE("optima of small layers overlap transfers in every way") {
  std::mt19937 draw(570);
  const int required = testing::counted(30, 300);
  constexpr double kMostCombinations = 4'000;
  test::PlanFeatures::Counts features = test::PlanFeatures::none();
  int counted = 0;
  for (int i = 0; counted < required && i < 20 * required; ++i) {
    CAPTURE(i);
    const int layers = 2 + i % 2;
    const Graph graph = test::layered_training(layers);
    test::TrainingSettings settings = test::random_settings(draw);
    settings.mesh = "2";
    settings.options.overlap = i % 4 == 0 ? 0.5 : 1;
    settings.options.layers = Layers::kFree;
    settings.options.pins = test::pins_of_batch(layers);
    const PlanProblem problem = test::problem_with(graph, settings);
    if (test::Exhaustive(problem).size() > kMostCombinations) continue;
    ++counted;
    const PlanSolution solution = solve_plan(problem);
    REQUIRE(solution.assignment);
    const std::int64_t least = test::ExhaustiveWindows(problem).least();
    CHECK(solution.evaluation.objective == least);
    CHECK(solution.lower_bound == least);
    CHECK(solution.status == PlanStatus::kOptimal);
    test::PlanFeatures(problem, *solution.assignment, solution.evaluation)
        .count_in(features);
  }
  CHECK(counted == required);
  using Features = test::PlanFeatures;
  for (const char* feature :
       {Features::kGatherAhead, Features::kLaterReduction,
        Features::kLateGather, Features::kExposed, Features::kTwoWindows,
        Features::kOnceAStep, Features::kAccumulated}) {
    CAPTURE(std::string(feature));
    MESSAGE(std::string(feature) << ": " << features.at(feature));
    CHECK(features.at(feature) > 0);
  }
}

}  // namespace
}  // namespace shardprop

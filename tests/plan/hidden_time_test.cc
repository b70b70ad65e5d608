// What hides is no more than the compute beside it.
#include "plan/exhaustive.h"
#include "plan/exhaustive_windows.h"
#include "plan/invariants.h"
#include "plan/random_graph.h"
#include "plan/small_graphs.h"
#include "support/property.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/plan/make_plan.h>
#include <shardprop/plan/solve_plan.h>

#include <random>

namespace shardprop {
namespace {

using testing::value_of;

PlanProblem problem_of(const Graph& graph, const char* mesh,
                       const PlanOptions& options,
                       const Topology& topology = default_topology()) {
  return value_of(PlanProblem::create(graph, value_of(DeviceMesh::parse(mesh)),
                                      topology, testing::standard_library(),
                                      options));
}

// Links that are `times` as slow as a DGX H100's.
Topology slow_links(double times) {
  Topology topology = default_topology();
  topology.measured.clear();
  topology.node_reduces = false;
  topology.node_bandwidth_gbps.value /= times;
  topology.network_bandwidth_gbps.value /= times;
  topology.all_to_all_gbps.value /= times;
  return topology;
}

void check_windows(const PlanEvaluation& judged, const Plan& plan) {
  std::int64_t hidden = 0;
  for (const WindowLoad& window : judged.windows) {
    const std::int64_t here = window.hideable - window.exposed();
    CHECK(here <= window.compute);
    hidden += here;
  }
  CHECK(plan.summary.hidden_nanoseconds == hidden);
  CHECK(*plan.objective_nanoseconds >= plan.summary.communication_nanoseconds);
  CHECK(*plan.objective_nanoseconds >= plan.summary.compute_nanoseconds);
}

TEST_CASE("what hides in a window is bounded by the compute there") {
  const OpLibrary& library = testing::standard_library();
  for (const double times : {1.0, 8.0, 64.0}) {
    CAPTURE(times);
    const Graph graph =
        test::residual_training(library, 2, "4096", "1024", "4096");
    PlanOptions options;
    options.overlap = 1;
    options.optimizer = Optimizer::kAdamW;
    options.work_limit = 2'000'000'000;
    const PlanProblem problem =
        problem_of(graph, "dp=8", options, slow_links(times));
    CHECK(problem.num_windows() >= 1);
    const PlanSolution solution = solve_plan(problem);
    REQUIRE(solution.assignment);
    const Plan plan = assemble_plan(problem, solution);
    test::check_plan(plan);
    check_windows(solution.evaluation, plan);
    CHECK(static_cast<double>(solution.lower_bound) >=
          0.8 * static_cast<double>(solution.evaluation.objective));
  }
}

TEST_CASE("small graphs with overlap cost what counting through them says") {
  const OpLibrary& library = testing::standard_library();
  std::mt19937 draw(19);
  constexpr double kMostCombinations = 4'000;
  const int wanted = testing::full_counts() ? 1000 : 200;
  int counted = 0;
  int exposed = 0;
  for (int i = 0; counted < wanted && i < 20 * wanted; ++i) {
    CAPTURE(i);
    const Graph graph = test::random_graph(library, draw, 2 + i % 3);
    PlanOptions options;
    options.overlap = i % 4 == 0 ? 0.5 : 1;
    options.fusion = i % 5 == 0 ? Fusion::kCompiler : Fusion::kNone;
    if (i % 3 == 0) options.optimizer = Optimizer::kAdamW;
    const double times = std::array{1.0, 4.0, 30.0}[draw() % 3];
    const PlanProblem problem =
        problem_of(graph, i % 2 == 0 ? "2" : "4", options, slow_links(times));
    if (test::Exhaustive(problem).size() > kMostCombinations) continue;
    ++counted;
    const PlanSolution solution = solve_plan(problem);
    REQUIRE(solution.assignment);
    const std::int64_t least = test::ExhaustiveWindows(problem).least();
    CHECK(solution.evaluation.objective == least);
    CHECK(solution.lower_bound == least);
    CHECK(solution.status == PlanStatus::kOptimal);
    for (const WindowLoad& window : solution.evaluation.windows) {
      exposed += window.exposed() > 0 ? 1 : 0;
    }
  }
  CHECK(counted == wanted);
  MESSAGE(counted << " graphs, " << exposed << " windows with more to hide");
  CHECK(exposed > 0);
}

}  // namespace
}  // namespace shardprop

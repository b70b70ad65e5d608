// A plan to start from is judged as it is. So an answer costs no more than it, once the
// problem is set up.
#include "plan/search/parts/earlier_assignment.h"

#include "plan/search/plan_incumbent.h"
#include "plan/search/solve_plan.h"
#include "plan/training_graphs.h"
#include "support/dear_topology.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <doctest/doctest.h>
#include <shardprop/graph/recompute.h>
#include <shardprop/io/load_graph.h>
#include <shardprop/plan/make_plan.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace shardprop {
namespace {

using testing::value_of;

// EarlierPlans is a training graph on a mesh, and the plans and problems of it.
struct EarlierPlans {
  EarlierPlans(const char* name, const char* dims)
      : graph(value_of(running_graph(
            std::make_shared<const Graph>(value_of(load_graph(
                std::string("examples/graphs/tiny/") + name + ".json.gz",
                testing::standard_library()))),
            testing::standard_library(), {.is_compiled = true}))),
        mesh(value_of(DeviceMesh::parse(dims))) {
    options.optimizer = Optimizer::kAdamW;
    options.overlap = default_topology().overlap_discount.value;
    options.time_limit_seconds = 1e6;
    options.work_limit = 5'000'000;
  }

  Plan plan() const {
    return value_of(make_plan(*graph, mesh, testing::dear_compute(),
                              testing::standard_library(), options));
  }
  PlanProblem problem() const {
    return value_of(PlanProblem::create(*graph, mesh, testing::dear_compute(),
                                        testing::standard_library(), options));
  }

  std::shared_ptr<const Graph> graph;
  DeviceMesh mesh;
  PlanOptions options;
};

// Returns the plan as an assignment of the problem.
std::optional<PlanAssignment> read(const PlanProblem& problem,
                                   const Plan& plan) {
  return earlier_assignment(problem, plan, match_earlier_plan(problem, plan));
}

TEST_CASE("a plan of the same graph is read with its copies") {
  for (const char* name : {"llama3_train", "gpt2_train", "t5_train"}) {
    for (const char* mesh : {"3", "2,2"}) {
      CAPTURE(name);
      CAPTURE(mesh);
      const EarlierPlans given(name, mesh);
      const Plan plan = given.plan();
      REQUIRE(plan.has_plan());
      const PlanProblem problem = given.problem();
      const auto assignment = read(problem, plan);
      REQUIRE(assignment);
      const PlanEvaluation judged = evaluate(problem, *assignment);
      CHECK(judged.objective == *plan.objective_nanoseconds);
      CHECK(judged.peak_bytes == plan.memory.peak_bytes);
    }
  }
}

TEST_CASE("a plan of another graph, mesh or space is not read") {
  EarlierPlans given("llama3_train", "2,2");
  const Plan plan = given.plan();
  CHECK_FALSE(read(EarlierPlans("gpt2_train", "2,2").problem(), plan));
  CHECK_FALSE(read(EarlierPlans("llama3_train", "4,2").problem(), plan));
  given.options.recipe = value_of(Recipe::parse("fsdp=d0"));
  CHECK_FALSE(read(given.problem(), plan));
}

TEST_CASE("an answer under a memory limit costs no more than its start") {
  struct Case {
    const char* graph;
    const char* mesh;
    const char* recipe;
    std::int64_t memory_limit;
    int accumulate;
    double overlap;
  };
  // The networks that count memory do not represent these plans.
  for (const Case& given :
       {Case{"llama3_train", "dp=3", "megatron-sp=dp", 104'818, 2, 0},
        Case{"gpt2_train", "dp=2,tp=4", "fsdp=dp,megatron=tp", 23'496, 1,
             testing::dear_compute().overlap_discount.value}}) {
    CAPTURE(given.graph);
    EarlierPlans plans(given.graph, given.mesh);
    plans.options.memory_limit = given.memory_limit;
    plans.options.accumulate = given.accumulate;
    plans.options.overlap = given.overlap;
    plans.options.recipe = value_of(Recipe::parse(given.recipe));
    plans.options.work_limit = 20'000'000;
    const Plan start = plans.plan();
    REQUIRE(start.has_plan());
    plans.options.work_limit = 5'000'000;
    plans.options.recipe = {};
    plans.options.start_from = std::make_shared<const Plan>(start);
    const Plan answer = plans.plan();
    REQUIRE(answer.has_plan());
    CHECK(*answer.objective_nanoseconds <= *start.objective_nanoseconds);
    CHECK(answer.memory.peak_bytes <= given.memory_limit);
  }
}

TEST_CASE("a plan that contradicts a bound or a proof is left out") {
  EarlierPlans given("gpt2_train", "2");
  const PlanProblem problem = given.problem();
  const PlanSolution solution = solve_plan(problem);
  REQUIRE(solution.assignment);
  const std::int64_t cost = solution.evaluation.objective;
  PlanIncumbent open(problem);
  open.raise_bound(cost);
  CHECK(open.take_given(*solution.assignment));
  CHECK_FALSE(open.take_given(*solution.assignment));
  PlanIncumbent bounded(problem);
  bounded.raise_bound(cost + 1);
  CHECK_FALSE(bounded.take_given(*solution.assignment));
  PlanIncumbent refuted(problem);
  refuted.take_infeasible(std::nullopt);
  CHECK_FALSE(refuted.take_given(*solution.assignment));
  given.options.memory_limit = solution.evaluation.peak_bytes - 1;
  const PlanProblem tight = given.problem();
  CHECK_FALSE(PlanIncumbent(tight).take_given(*solution.assignment));
}

}  // namespace
}  // namespace shardprop

// First plans: recipes and joined mesh dims as restrictions of a problem, and
// searches that begin with their plans.
#include "plan/search/parts/first_plans.h"
#include "plan/problem/constraints/recipe_layouts.h"
#include "plan/random_graph.h"
#include "plan/search/parts/restricted_problem.h"
#include "plan/search/solve_plan.h"
#include "plan/small_graphs.h"
#include "support/dear_topology.h"
#include "support/property.h"
#include "support/result_checks.h"
#include "support/sanitizers.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/plan/make_plan.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

Graph tiny(const std::string& name) {
  return value_of(load_graph("examples/graphs/tiny/" + name + ".json.gz",
                             testing::standard_library()));
}

PlanProblem dear_problem(const Graph& graph, const char* mesh,
                         const PlanOptions& options, const SetUp& set_up = {}) {
  return value_of(PlanProblem::create(
      graph, value_of(DeviceMesh::parse(mesh)), testing::dear_compute(),
      testing::standard_library(), options, set_up));
}

PlanOptions training() {
  PlanOptions options;
  options.optimizer = Optimizer::kAdamW;
  options.time_limit_seconds = 1e6;
  options.work_limit = 20'000'000;
  return options;
}

// The plan of a part is one of the whole problem, at the same price and with the
// same bytes, and every choice of it is one that is left.
void check_part(const PlanProblem& problem, const Restriction& restriction) {
  const RestrictedProblem part(problem, restriction);
  const PlanSolution solution = solve_plan(part.problem());
  if (!solution.assignment) return;
  const PlanAssignment whole = part.widened(*solution.assignment);
  const PlanEvaluation judged = evaluate(problem, whole);
  CHECK(judged.broken == "");
  CHECK(judged.objective == solution.evaluation.objective);
  CHECK(judged.peak_bytes == solution.evaluation.peak_bytes);
  CHECK(judged.peak_at == solution.evaluation.peak_at);
  CHECK(judged.windows == solution.evaluation.windows);
  for (std::size_t v = 0; v < whole.choices.size(); ++v) {
    const auto& left = restriction.left[v];
    CHECK((left.empty() ||
           std::count(left.begin(), left.end(), whole.choices[v]) == 1));
  }
}

TEST_CASE("plans of first spaces are plans of the problem") {
  for (const char* name : {"llama3_train", "mixtral_infer"}) {
    const Graph graph = tiny(name);
    for (const char* mesh : {"a=4", "a=2,b=2", "a=2,b=1,c=2"}) {
      CAPTURE(std::string(name));
      CAPTURE(std::string(mesh));
      PlanOptions options = training();
      options.work_limit = 5'000'000;
      options.overlap = 0.5;
      options.accumulate = 4;
      const PlanProblem problem = dear_problem(graph, mesh, options);
      const auto spaces = first_spaces(problem);
      CHECK(spaces.size() >= problem.known_recipes().size());
      for (const FirstSpace& space : spaces) {
        CAPTURE(space.recipe ? to_string(*space.recipe) : "joined");
        check_part(problem, restriction_to(problem, space));
      }
    }
  }
}

TEST_CASE("any choices that are left make a problem of their own") {
  std::mt19937 random(7);
  const OpLibrary& library = testing::standard_library();
  for (int i = 0; i < 30; ++i) {
    CAPTURE(i);
    const Graph graph = test::random_graph(library, random, 6);
    PlanOptions options = training();
    options.accumulate = 1 + i % 2;
    const PlanProblem problem = dear_problem(graph, "2,2", options);
    Restriction some = no_restriction(problem);
    for (std::size_t v = 0; v < some.left.size(); ++v) {
      const std::size_t size = problem.variables()[v].choices->size();
      for (std::uint32_t c = 0; c < size; ++c) {
        if (random() % 3 == 0) some.left[v].push_back(c);
      }
    }
    check_part(problem, some);
    check_part(problem, no_restriction(problem));
  }
}

TEST_CASE(
    "a recipe as a restriction costs what it costs when it is set up alone") {
  const Graph graph = tiny("llama3_train");
  PlanOptions options = training();
  options.work_limit = 200'000'000;
  for (const char* mesh : {"dp=4", "dp=2,tp=2"}) {
    const PlanProblem problem = dear_problem(graph, mesh, options);
    for (const Recipe& recipe : problem.known_recipes()) {
      CAPTURE(to_string(recipe));
      PlanOptions own = options;
      own.recipe = recipe;
      const PlanSolution alone = solve_plan(dear_problem(graph, mesh, own));
      const RestrictedProblem part(problem, following(problem, recipe));
      const PlanSolution restricted = solve_plan(part.problem());
      REQUIRE(alone.status == PlanStatus::kOptimal);
      REQUIRE(restricted.status == PlanStatus::kOptimal);
      // Set up on its own, values may be cached in layouts that no choice has.
      CHECK(alone.evaluation.objective <= restricted.evaluation.objective);
      CHECK(static_cast<double>(restricted.evaluation.objective) <=
            1.01 * static_cast<double>(alone.evaluation.objective));
    }
  }
}

TEST_CASE("joined mesh dims have the plans of the mesh where they are one") {
  const Graph graph = tiny("llama3_train");
  PlanOptions options = training();
  options.layers = Layers::kFree;
  options.gap = 0;
  options.work_limit = 200'000'000;
  const PlanSolution merged =
      solve_plan(dear_problem(graph, "a=4,b=2", options));
  REQUIRE(merged.status == PlanStatus::kOptimal);
  SetUp set_up;
  set_up.space = {2, 0b010};
  // Shards of heads over two mesh dims may be uneven, so this space is larger.
  options.work_limit = 1'000'000'000;
  const PlanSolution joined =
      solve_plan(dear_problem(graph, "a=2,c=2,b=2", options, set_up));
  REQUIRE(joined.assignment);
  CHECK(joined.status == PlanStatus::kOptimal);
  CHECK(joined.evaluation.objective <= merged.evaluation.objective);
}

// Returns the cost of a plan, or INT64_MAX if the plan has no cost.
std::int64_t cost_of(const Plan& plan) {
  return plan.objective_nanoseconds.value_or(INT64_MAX);
}

Plan plan_of(const Graph& graph, const char* mesh, const PlanOptions& options) {
  return value_of(make_plan(graph, value_of(DeviceMesh::parse(mesh)),
                            testing::dear_compute(),
                            testing::standard_library(), options));
}

TEST_CASE("a free search ends at or below every recipe, however short") {
  if (testing::kThreadSanitizer) return;
  const Graph graph = tiny("llama3_train");
  unsigned which = 0;
  for (const char* mesh : {"dp=4", "dp=2,tp=2"}) {
    for (const std::uint64_t work : {300'000U, 5'000'000U}) {
      for (const double overlap : {0.0, 1.0}) {
        for (const std::int64_t memory : {0, 200 << 10}) {
          // Half of the cases have each combination of three of the values.
          const bool is_of_every_day = std::popcount(which++) % 2 == 0;
          if (!is_of_every_day && !testing::full_counts()) continue;
          CAPTURE(std::string(mesh));
          CAPTURE(work);
          CAPTURE(overlap);
          CAPTURE(memory);
          PlanOptions options = training();
          options.work_limit = work;
          options.overlap = overlap;
          options.accumulate = memory == (200 << 10) ? 4 : 1;
          if (memory > 0) options.memory_limit = memory;
          const Plan free = plan_of(graph, mesh, options);
          options.compare = true;
          const Plan compared = plan_of(graph, mesh, options);
          CHECK(compared.objective_nanoseconds == free.objective_nanoseconds);
          CHECK(compared.nodes == free.nodes);
          CHECK(compared.copies == free.copies);
          CHECK(compared.lower_bound_nanoseconds ==
                free.lower_bound_nanoseconds);
          CHECK(compared.ran_out == free.ran_out);
          for (const PlanRecipe& recipe : compared.recipes) {
            CAPTURE(recipe.name);
            if (!recipe.objective_nanoseconds) continue;
            CHECK(cost_of(free) <= *recipe.objective_nanoseconds);
          }
        }
      }
    }
  }
}

// Each recipe has a plan, and none costs less than the plan itself.
void check_recipes(const Plan& plan) {
  REQUIRE(plan.has_plan());
  REQUIRE_FALSE(plan.recipes.empty());
  for (const PlanRecipe& recipe : plan.recipes) {
    CAPTURE(recipe.name);
    REQUIRE(recipe.objective_nanoseconds);
    CHECK(cost_of(plan) <= *recipe.objective_nanoseconds);
  }
}

TEST_CASE("every recipe has a plan under the least work") {
  const Graph graph = tiny("llama3_train");
  for (const char* mesh : {"dp=4", "dp=2,tp=2"}) {
    for (const std::uint64_t work : {1U, 1'000U, 1'000'000U}) {
      CAPTURE(std::string(mesh));
      CAPTURE(work);
      PlanOptions options = training();
      options.work_limit = work;
      options.overlap = 1;
      options.compare = true;
      const Plan plan = plan_of(graph, mesh, options);
      check_recipes(plan);
    }
  }
}

// On three mesh dims the smaller spaces spend the work before the named space.
TEST_CASE("every recipe has a plan if smaller spaces spend the work") {
  const DeviceMesh mesh = value_of(DeviceMesh::parse("2,2,2"));
  for (const char* name : {"llama3_train", "deepseek_moe_train"}) {
    CAPTURE(std::string(name));
    PlanOptions options = training();
    options.work_limit = 1;
    options.compare = true;
    const Plan plan =
        value_of(make_plan(tiny(name), mesh, testing::dear_compute(),
                           testing::standard_library(), options));
    check_recipes(plan);
  }
}

TEST_CASE("a plan with free layers costs no more than one of equal layers") {
  const Graph graph = tiny("llama3_train");
  PlanOptions options = training();
  options.overlap = 1;
  options.work_limit = 2'000'000'000;
  const Plan alike = plan_of(graph, "dp=2,tp=2", options);
  REQUIRE(alike.status == PlanStatus::kOptimal);
  options.layers = Layers::kFree;
  options.work_limit = 100'000'000;
  const Plan free = plan_of(graph, "dp=2,tp=2", options);
  REQUIRE(free.has_plan());
  CHECK(cost_of(free) <= cost_of(alike));
}

TEST_CASE("four mesh dims are planned no worse than the two they merge to") {
  const Graph graph = test::residual_training(testing::standard_library(), 2,
                                              "512", "256", "1024");
  PlanOptions options = training();
  const Plan merged = plan_of(graph, "dp=8,tp=2", options);
  const Plan fine = plan_of(graph, "dp=2,fsdp=2,cp=2,tp=2", options);
  REQUIRE(merged.has_plan());
  CHECK(cost_of(fine) <= cost_of(merged));
}

TEST_CASE("with a memory limit gradients are reduced each time if need be") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = test::residual_training(library, 4, "512", "256", "1024");
  PlanOptions options = training();
  options.precision = Precision::kMixed;
  const Plan once = plan_of(graph, "dp=8", options);
  REQUIRE(once.has_plan());
  PlanOptions least = options;
  least.recipe = value_of(Recipe::parse("fsdp"));
  const std::int64_t sharded = plan_of(graph, "dp=8", least).memory.peak_bytes;
  options.accumulate = 8;
  for (const char* recipe : {"", "fsdp"}) {
    // A limit that fits one micro-batch fits eight: each gradient is reduced
    // and added to the accumulated part.
    for (const int percent : {105, 115, 140}) {
      CAPTURE(std::string(recipe));
      CAPTURE(percent);
      PlanOptions own = options;
      own.memory_limit = sharded * percent / 100;
      if (*recipe != 0) own.recipe = value_of(Recipe::parse(recipe));
      const Plan plan = plan_of(graph, "dp=8", own);
      REQUIRE(plan.has_plan());
      CHECK(plan.memory.peak_bytes <= *own.memory_limit);
    }
  }
}

TEST_CASE("little work under a memory limit is left to the memory network") {
  const Graph graph = tiny("llama3_train");
  PlanOptions options = training();
  options.precision = Precision::kMixed;
  options.overlap = 0.5;
  const auto plan_within = [&](std::optional<std::int64_t> limit) {
    PlanOptions own = options;
    own.memory_limit = limit;
    return value_of(make_plan(graph, value_of(DeviceMesh::parse("2,4")),
                              default_topology(), testing::standard_library(),
                              own));
  };
  const Plan roomy = plan_within(std::nullopt);
  REQUIRE(roomy.has_plan());
  const Plan tight = plan_within(roomy.memory.peak_bytes * 9 / 10);
  REQUIRE(tight.has_plan());
  const auto record = [&](std::string_view name) {
    const auto found = std::find_if(
        tight.procedures.begin(), tight.procedures.end(),
        [&](const Procedure& procedure) { return procedure.name == name; });
    return found == tight.procedures.end() ? Procedure{} : *found;
  };
  CHECK(record("memory-network").work > 0);
  // Its plan is mixed with the first plans, although the work is spent.
  CHECK(record("mixed-plans").runs == 2);
}

TEST_CASE("a search reports the limit that ended it") {
  const Graph graph = tiny("llama3_train");
  PlanOptions options = training();
  options.work_limit = 300'000;
  CHECK(plan_of(graph, "2,2", options).ran_out == RanOut::kWork);
  options.work_limit.reset();
  options.time_limit_seconds = 0;
  CHECK(plan_of(graph, "2,2", options).ran_out == RanOut::kTime);
  std::stop_source source;
  options.time_limit_seconds = 1e6;
  options.work_limit = 1'000'000'000'000;
  options.stop = source.get_token();
  int reports = 0;
  options.progress = [&](const PlanProgress& progress) {
    if (progress.phase == PlanProgress::Phase::kSearch && ++reports > 1) {
      source.request_stop();
    }
  };
  options.memory_limit = 120 << 10;
  const Plan stopped = plan_of(graph, "2,2,2", options);
  CHECK((stopped.ran_out == RanOut::kInterrupted ||
         stopped.status == PlanStatus::kOptimal));
  options = training();
  options.work_limit = 2'000'000'000;
  const Plan proven = plan_of(graph, "2,2", options);
  REQUIRE(proven.status == PlanStatus::kOptimal);
  CHECK(proven.ran_out == RanOut::kNothing);
}

}  // namespace
}  // namespace shardprop

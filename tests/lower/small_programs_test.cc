// Programs of small graphs hold the bytes that their plans count, slot by slot, in
// all combinations of second runs, layers, micro-batches, overlap and fusion. They
// take the planned time.
#include "plan/evaluate/plan_assignment.h"
#include "plan/explain/assemble_plan.h"
#include "plan/layered_graphs.h"
#include "plan/layered_training.h"
#include "plan/random_plans.h"
#include "plan/search/solve_plan.h"
#include "plan/training_graphs.h"
#include "support/property.h"

#include <shardprop/lower/lower.h>
#include <shardprop/lower/program_prices.h>
#include <shardprop/program/footprint.h>
#include <shardprop/program/program_time.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

struct SlotCounts {
  int programs = 0;
  int with_second_runs = 0;
  int slots = 0;
  int equal = 0;  // slots
};

void check_program(const Graph& graph, const test::TrainingSettings& settings,
                   SlotCounts& counts) {
  const PlanProblem problem = test::problem_with(graph, settings);
  const PlanSolution solution = solve_plan(problem);
  REQUIRE(solution.assignment);
  const Plan plan = assemble_plan(problem, solution);
  const SpmdProgram program =
      value_of(lower(plan, graph, testing::standard_library()));
  ++counts.programs;
  counts.with_second_runs += plan.summary.recompute_nanoseconds > 0 ? 1 : 0;
  CHECK(program_time(program, program_prices(plan)) >=
        *plan.objective_nanoseconds);
  const std::vector<std::int64_t> held = live_bytes(program);
  const std::vector<std::int64_t> planned =
      bytes_by_slot(problem, *solution.assignment, KernelMemory::kUnfused);
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    CAPTURE(graph.nodes()[n].name);
    CHECK(held[n] <= planned[n]);
    ++counts.slots;
    counts.equal += held[n] == planned[n] ? 1 : 0;
  }
}

// 2 graphs every day, 60 with SHARDPROP_FULL=1, in up to 48 combinations each.
TEST_CASE("programs of small graphs hold what their plans count") {
  std::mt19937 draw(582);
  const int graphs = testing::counted(2, 60);
  SlotCounts counts;
  for (int i = 0; i < graphs; ++i) {
    CAPTURE(i);
    test::LayeredGraph::Shape shape;
    shape.layers = 3;
    shape.after = static_cast<test::LayeredGraph::After>(draw() % 5);
    shape.has_head = draw() % 2 == 0;
    const auto plain =
        std::make_shared<const Graph>(test::LayeredGraph(shape).build());
    test::TrainingSettings settings = test::random_settings(draw);
    // Programs train each parameter in its own dtype.
    settings.options.precision = Precision::kOwn;
    for (int k = 0; k < 16; ++k) {
      settings.options.fusion = k % 2 == 0 ? Fusion::kCompiler : Fusion::kNone;
      settings.options.layers = k / 2 % 2 == 0 ? Layers::kAlike : Layers::kFree;
      settings.options.accumulate = k / 4 % 2 == 0 ? 1 : 4;
      settings.options.overlap = k / 8 % 2 == 0 ? 0 : 1;
      for (const char* rule : {"none", "selective", "full"}) {
        CAPTURE(k);
        CAPTURE(std::string(rule));
        const auto running =
            running_graph(plain, testing::standard_library(),
                          {k % 2 == 0, value_of(Recompute::parse(rule))});
        if (running) check_program(**running, settings, counts);
      }
    }
  }
  MESSAGE(counts.equal << " of " << counts.slots << " slots are equal, in "
                       << counts.programs << " programs, "
                       << counts.with_second_runs << " with second runs");
  CHECK(counts.programs >= 16 * graphs);
  if (testing::full_counts()) CHECK(counts.with_second_runs > 0);
  // A plan counts what buckets and transfers in flight hold at most.
  CHECK(counts.equal * 2 > counts.slots);
}

// Returns the layers' settings with micro-batches, in which no parameter is
// gathered after its update.
test::TrainingSettings accumulating_settings(std::mt19937& draw, int layers) {
  test::TrainingSettings out = test::random_settings(draw);
  out.options.accumulate = std::array{2, 3, 7, 300}[draw() % 4];
  out.options.overlap = std::array{0.3, 0.5, 0.77}[draw() % 3];
  out.options.optimizer = draw() % 2 == 0 ? Optimizer::kSgd : Optimizer::kAdamW;
  out.options.precision = Precision::kOwn;
  out.options.pins = test::pins_of_batch(layers);
  out.options.pins.push_back(
      value_of(Pin::parse(draw() % 2 == 0 ? "state:w*=R" : "stored:w*=S(0)")));
  return out;
}

TEST_CASE("programs that reduce gradients once a step take the planned time") {
  std::mt19937 draw(573);
  const int required = testing::counted(60, 600);
  std::size_t once_a_step = 0;  // copies
  std::size_t in_flight = 0;    // of them
  for (int i = 0; i < required; ++i) {
    CAPTURE(i);
    const int layers = 2 + i % 2;
    const Graph graph = test::layered_training(layers);
    const test::TrainingSettings settings = accumulating_settings(draw, layers);
    CAPTURE(settings.options.accumulate);
    CAPTURE(settings.options.overlap);
    const PlanProblem problem = test::problem_with(graph, settings);
    const Plan plan =
        assemble_plan(problem, testing::RandomPlans(problem, draw()).next());
    for (const PlannedCopy& copy : plan.copies) {
      const bool is_once = copy.once_a_step && copy.nanoseconds() > 0;
      once_a_step += is_once ? 1 : 0;
      in_flight += is_once && copy.in_flight ? 1 : 0;
    }
    const SpmdProgram program =
        value_of(lower(plan, graph, testing::standard_library()));
    CHECK(program_time(program, program_prices(plan)) ==
          *plan.objective_nanoseconds);
  }
  MESSAGE(once_a_step << " copies once a step, " << in_flight << " in flight");
  CHECK(once_a_step > static_cast<std::size_t>(required));
  CHECK(in_flight > static_cast<std::size_t>(required) / 2);
}

// Returns the overlapped time of gathers after an update. The program of one step
// waits for it.
std::int64_t overlapped_by_next_step(const Plan& plan) {
  std::int64_t sum = 0;
  for (const PlannedCopy& copy : plan.copies) {
    if (!copy.in_flight) sum += copy.overlapped_nanoseconds;
  }
  return sum;
}

TEST_CASE("programs of random training graphs take the planned time") {
  std::mt19937 draw(577);
  const int required = testing::counted(2'000, 10'000);
  int programs = 0;
  int equal = 0;
  int in_flight = 0;  // programs with overlapped copies
  int with_buckets = 0;
  for (int i = 0; programs < required && i < 4 * required; ++i) {
    CAPTURE(i);
    const Graph graph =
        test::random_training_graph(draw, {1 + i % 7, /*has_input=*/true});
    test::TrainingSettings settings = test::random_settings(draw);
    settings.options.overlap = std::array{0.0, 0.3, 0.5, 1.0}[draw() % 4];
    settings.options.accumulate = std::array{1, 2, 7, 8, 300}[draw() % 5];
    settings.options.precision = Precision::kOwn;
    CAPTURE(settings.options.accumulate);
    CAPTURE(settings.options.overlap);
    const PlanProblem problem = test::problem_with(graph, settings);
    const Plan plan =
        assemble_plan(problem, testing::RandomPlans(problem, draw()).next());
    const auto program = lower(plan, graph, testing::standard_library());
    if (!program) MESSAGE(to_string(program.error()));
    if (!program) continue;
    ++programs;
    const std::int64_t time = program_time(*program, program_prices(plan));
    const std::int64_t next_step = overlapped_by_next_step(plan);
    CHECK(*plan.objective_nanoseconds <= time);
    CHECK(time <= *plan.objective_nanoseconds + next_step);
    equal += time == *plan.objective_nanoseconds ? 1 : 0;
    in_flight +=
        std::any_of(plan.copies.begin(), plan.copies.end(),
                    [](const PlannedCopy& copy) {
                      return copy.in_flight && copy.overlapped_nanoseconds > 0;
                    })
            ? 1
            : 0;
    with_buckets += std::any_of(plan.copies.begin(), plan.copies.end(),
                                [](const PlannedCopy& copy) {
                                  return copy.bucket.has_value();
                                })
                        ? 1
                        : 0;
  }
  MESSAGE(programs << " programs, " << equal << " take the objective, "
                   << in_flight << " overlap, " << with_buckets
                   << " have buckets");
  CHECK(programs == required);
  CHECK(equal > programs / 10 * 9);
  CHECK(in_flight > programs / 20);
  CHECK(with_buckets > 0);
}

}  // namespace
}  // namespace shardprop

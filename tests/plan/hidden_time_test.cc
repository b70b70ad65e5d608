// The overlapped time of transfers is at most the time of the compute in their window.
#include "plan/exhaustive.h"
#include "plan/exhaustive_windows.h"
#include "plan/explain/assemble_plan.h"
#include "plan/invariants.h"
#include "plan/layered_training.h"
#include "plan/problem/overlap_windows.h"
#include "plan/random_graph.h"
#include "plan/search/solve_plan.h"
#include "plan/slow_links.h"
#include "plan/small_graphs.h"
#include "support/property.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/plan/make_plan.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

PlanProblem problem_with_overlap(
    const Graph& graph, const char* mesh, const PlanOptions& options,
    const Topology& topology = default_topology()) {
  return value_of(PlanProblem::create(graph, value_of(DeviceMesh::parse(mesh)),
                                      topology, testing::standard_library(),
                                      options));
}

void check_windows(const PlanEvaluation& judged, const Plan& plan) {
  std::int64_t overlapped = 0;
  for (const WindowLoad& window : judged.windows) {
    const std::int64_t here = window.overlappable - window.exposed();
    CHECK(here <= window.compute);
    overlapped += here;
  }
  CHECK(plan.summary.overlapped_nanoseconds == overlapped);
  CHECK(*plan.objective_nanoseconds >= plan.summary.communication_nanoseconds);
  CHECK(*plan.objective_nanoseconds >= plan.summary.compute_nanoseconds);
}

// The graph has the gradients of two biases. One is only an output, under a view.
// The backward pass reads the other one, as it does for batch norm.
TEST_CASE("a gradient that is read at once is not reduced in a bucket") {
  const std::vector<GivenArgument> sums = {{"", TensorArg{0}},
                                           {"", std::vector<std::int64_t>{0}}};
  GraphBuilder b("biases", testing::standard_library());
  const ValueId x = test::add_input(b, InputKind::kUser, "x", "f32[64,32]");
  const ValueId p = test::add_input(b, InputKind::kParameter, "p", "f32[32]");
  const ValueId q = test::add_input(b, InputKind::kParameter, "q", "f32[32]");
  const ValueId gp = test::add_op(b, "aten.sum.dim_IntList", sums, {x}, "gp");
  const ValueId viewed = test::add_op(
      b, "aten.view.default",
      {{"", TensorArg{0}}, {"", std::vector<std::int64_t>{32}}}, {gp}, "shown");
  const ValueId r =
      test::add_op(b, "aten.relu.default", {{"", TensorArg{0}}}, {x}, "r");
  const ValueId gq = test::add_op(b, "aten.sum.dim_IntList", sums, {r}, "gq");
  const ValueId row =
      test::add_op(b, "aten.unsqueeze.default",
                   {{"", TensorArg{0}}, {"", std::int64_t{0}}}, {gq}, "row");
  const ValueId y =
      test::add_op(b, "aten.mul.Tensor",
                   {{"", TensorArg{0}}, {"", TensorArg{1}}}, {x, row}, "y");
  b.add_output({.value = y});
  b.add_output({.value = viewed, .kind = OutputKind::kGradient, .target = p});
  b.add_output({.value = gq, .kind = OutputKind::kGradient, .target = q});
  const Graph graph = value_of(std::move(b).build());
  const PlanProblem problem = problem_with_overlap(graph, "2", {});
  CHECK(problem.value(viewed).overlappable);
  CHECK(problem.value(gp).overlappable);
  CHECK_FALSE(problem.value(gq).overlappable);
}

TEST_CASE("overlapped time in a window is at most its compute") {
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
        problem_with_overlap(graph, "dp=8", options, test::slow_links(times));
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

// Recounted has the times of one window that the plan itself states.
struct Recounted {
  std::int64_t compute = 0;
  std::int64_t overlapped = 0;
};

// Counts the entries of a plan, by window.
std::vector<Recounted> recount(const Plan& plan, const PlanProblem& problem) {
  const Windows& windows = problem.windows();
  const auto slots = static_cast<std::int64_t>(plan.nodes.size());
  std::vector<Recounted> out(windows.size());
  for (std::int64_t n = 0; n < slots; ++n) {
    out[windows.at(n)].compute +=
        plan.nodes[static_cast<std::size_t>(n)].compute_nanoseconds;
  }
  std::map<std::string, ValueId> named;
  for (const Value& value : problem.graph().values()) {
    named[value.display_name()] = value.id;
  }
  for (const PlannedCopy& copy : plan.copies) {
    CHECK(copy.overlapped_nanoseconds <= copy.nanoseconds());
    if (copy.overlapped_nanoseconds == 0) continue;
    const bool is_update =
        copy.reason.user && copy.reason.user->kind == CopyUser::Kind::kNextStep;
    const PlanBuffer& buffer = problem.buffer(
        problem.value(named.at(is_update ? copy.reason.user->name : copy.from))
            .buffer);
    const auto window =
        is_update
            ? problem.window_after_update(problem.variable(buffer.producer))
            : problem.overlap_window(buffer, copy.produced_at);
    REQUIRE(window);
    out[*window].overlapped += copy.overlapped_nanoseconds;
  }
  return out;
}

// Each graph on fast and on slow links with SHARDPROP_FULL=1, every third of
// these pairs every day.
TEST_CASE("the example graphs overlap no more time than there is compute") {
  const OpLibrary& library = testing::standard_library();
  std::vector<std::string> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator("examples/graphs/tiny")) {
    const std::string path = entry.path().string();
    if (path.ends_with(".json.gz")) paths.push_back(path);
  }
  std::sort(paths.begin(), paths.end());
  int full = 0;  // windows whose compute is all made use of
  int pair = 0;
  for (const std::string& path : paths) {
    const Graph graph = value_of(load_graph(path, library));
    for (const double times : {1.0, 20.0}) {
      if (pair++ % 5 != 0 && !testing::full_counts()) continue;
      CAPTURE(path);
      CAPTURE(times);
      PlanOptions options;
      options.overlap = 1;
      options.optimizer = Optimizer::kAdamW;
      options.work_limit = 20'000'000;
      const PlanProblem problem =
          problem_with_overlap(graph, "2,2", options, test::slow_links(times));
      const PlanSolution solution = solve_plan(problem);
      REQUIRE(solution.assignment);
      const Plan plan = assemble_plan(problem, solution);
      check_windows(solution.evaluation, plan);
      const std::vector<Recounted> windows = recount(plan, problem);
      REQUIRE(windows.size() == solution.evaluation.windows.size());
      std::int64_t overlapped = 0;
      for (std::size_t w = 0; w < windows.size(); ++w) {
        CAPTURE(w);
        CHECK(windows[w].compute == solution.evaluation.windows[w].compute);
        CHECK(windows[w].overlapped <= windows[w].compute);
        overlapped += windows[w].overlapped;
        full += windows[w].overlapped == windows[w].compute ? 1 : 0;
      }
      CHECK(overlapped == plan.summary.overlapped_nanoseconds);
    }
  }
  MESSAGE(full << " windows with as much hidden as is computed");
}

TEST_CASE("transfers overlap with the compute of neighbouring layers") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph =
      value_of(load_graph("examples/graphs/llama3_8b_train.json.gz", library));
  PlanOptions options;
  options.optimizer = Optimizer::kAdamW;
  options.precision = Precision::kMixed;
  // Free layers take 15 s.
  options.layers = testing::full_counts() ? Layers::kFree : Layers::kAlike;
  options.overlap = default_topology().overlap_discount.value;
  options.work_limit = 10'000'000'000;
  options.time_limit_seconds = 1e12;  // the same on slow machines
  const PlanSolution solution =
      solve_plan(problem_with_overlap(graph, "dp=8,tp=8", options));
  REQUIRE(solution.assignment);
  const auto cost = static_cast<double>(solution.evaluation.objective);
  CHECK(static_cast<double>(solution.lower_bound) > 0.93 * cost);
  // Equal layers cost almost as little as layers that choose for themselves.
  CHECK(static_cast<double>(solution.uniform_costs_more.value_or(0)) <
        0.03 * cost);
  MESSAGE(solution.evaluation.objective
          << " ns, at least " << solution.lower_bound << ", alike "
          << solution.uniform_costs_more.value_or(0) << " more, work "
          << solution.work);
}

TEST_CASE("small graphs with overlap cost what enumeration finds") {
  const OpLibrary& library = testing::standard_library();
  std::mt19937 draw(19);
  constexpr double kMostCombinations = 4'000;
  const int required = testing::counted(100, 1000);
  int counted = 0;
  int exposed = 0;
  int overlapped = 0;
  int costlier = 0;  // than with hidden time that knows no bound
  for (int i = 0; counted < required && i < 20 * required; ++i) {
    CAPTURE(i);
    // Transfers of these layers have a window.
    const bool is_layered = i % 5 == 4;
    const Graph graph = is_layered
                            ? test::layered_training(2)
                            : test::random_graph(library, draw, 2 + i % 3);
    PlanOptions options;
    if (is_layered) options.pins = test::pins_of_batch(2);
    options.overlap = i % 4 == 0 ? 0.5 : 1;
    options.fusion = i % 5 == 0 ? Fusion::kCompiler : Fusion::kNone;
    if (i % 3 != 0) options.optimizer = Optimizer::kAdamW;
    options.accumulate = std::array{1, 2, 1, 5}[i / 2 % 4];
    const double times = std::array{0.5, 1.0, 2.0, 8.0}[draw() % 4];
    const PlanProblem problem = problem_with_overlap(
        graph, i % 2 == 0 ? "2" : "4", options, test::slow_links(times));
    test::Exhaustive unbounded(problem);
    if (unbounded.size() > kMostCombinations) continue;
    ++counted;
    const PlanSolution solution = solve_plan(problem);
    REQUIRE(solution.assignment);
    const std::int64_t least = test::ExhaustiveWindows(problem).least();
    costlier += unbounded.least() < least ? 1 : 0;
    CHECK(solution.evaluation.objective == least);
    CHECK(solution.lower_bound == least);
    CHECK(solution.status == PlanStatus::kOptimal);
    for (const WindowLoad& window : solution.evaluation.windows) {
      exposed += window.exposed() > 0 ? 1 : 0;
      overlapped += window.overlappable > window.exposed() ? 1 : 0;
    }
  }
  CHECK(counted == required);
  MESSAGE(counted << " graphs, " << costlier << " cost more for it, " << exposed
                  << " windows with exposed and " << overlapped
                  << " with overlapped time");
  CHECK(exposed > 0);
  CHECK(overlapped > 0);
  CHECK(costlier > 5);
}

}  // namespace
}  // namespace shardprop

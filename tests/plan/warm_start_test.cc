// Searches that end within a gap, and searches that start from an earlier plan.
#include "plan/network/warm_start.h"
#include "plan/search/parts/earlier_plan_match.h"
#include "plan/search/solve_plan.h"
#include "plan/training_graphs.h"
#include "support/property.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/io/load_graph.h>
#include <shardprop/plan/make_plan.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <variant>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

Graph example_graph(const std::string& name) {
  return value_of(load_graph("examples/graphs/" + name + ".json.gz",
                             testing::standard_library()));
}

PlanOptions by_work(std::uint64_t work, double gap) {
  PlanOptions options;
  options.optimizer = Optimizer::kAdamW;
  options.overlap = 0.5;
  options.time_limit_seconds = 1e6;
  options.work_limit = work;
  options.gap = gap;
  return options;
}

Plan plan_of(const Graph& graph, const char* mesh, const PlanOptions& options) {
  return value_of(make_plan(graph, value_of(DeviceMesh::parse(mesh)),
                            default_topology(), testing::standard_library(),
                            options));
}

PlanOptions from(PlanOptions options, const Plan& plan) {
  options.start_from = std::make_shared<const Plan>(plan);
  return options;
}

// Returns the note on the plan that the search was to start from.
EarlierPlanNote start_of(const Plan& plan) {
  for (const PlanNote& note : plan.notes) {
    if (const auto* start = std::get_if<EarlierPlanNote>(&note)) return *start;
  }
  FAIL("the plan has no note on an earlier plan");
  return {};
}

// Checks that all names of the graph were found in the earlier plan, which led
// to a plan.
void check_all_matched(const Plan& plan, const Graph& graph) {
  const EarlierPlanNote start = start_of(plan);
  CHECK(start.led_to_plan);
  CHECK(start.operators == static_cast<std::int64_t>(graph.nodes().size()));
  CHECK(start.matched_operators == start.operators);
  CHECK(start.tensors == static_cast<std::int64_t>(graph.inputs().size()));
  CHECK(start.matched_tensors == start.tensors);
}

void check_within_gap(const Plan& plan, double gap) {
  REQUIRE(plan.has_plan());
  CHECK(plan.lower_bound_nanoseconds <= *plan.objective_nanoseconds);
  CHECK(*plan.gap() <= gap);
  CHECK((plan.status == PlanStatus::kOptimal || plan.ran_out == RanOut::kGap));
}

TEST_CASE("a search ends within its gap, and its bound holds") {
  const Graph graph = example_graph("tiny/llama3_train");
  const Plan best = plan_of(graph, "2,4", by_work(4'000'000'000, 0));
  REQUIRE(best.status == PlanStatus::kOptimal);
  for (const double gap : {0.001, 0.01, 0.2, 1.0}) {
    CAPTURE(gap);
    const Plan near = plan_of(graph, "2,4", by_work(4'000'000'000, gap));
    check_within_gap(near, gap);
    CHECK(near.lower_bound_nanoseconds <= *best.objective_nanoseconds);
    CHECK(*near.objective_nanoseconds >= *best.objective_nanoseconds);
  }
}

TEST_CASE("a search starts from the plan of the same graph") {
  const Graph graph = example_graph("tiny/llama3_train");
  const PlanOptions options = by_work(4'000'000'000, kDefaultGap);
  const Plan before = plan_of(graph, "2,4", options);
  PlanOptions other = from(options, before);
  other.pins = {value_of(Pin::parse("*.mlp.down_proj.weight=R,R"))};
  const Plan after = plan_of(graph, "2,4", other);
  check_within_gap(after, kDefaultGap);
  check_all_matched(after, graph);
  CHECK(start_of(after).graph == before.graph_name);
  // The bound of the problem with the pin holds for the plan without the start.
  other.start_from = nullptr;
  const Plan fresh = plan_of(graph, "2,4", other);
  CHECK(after.lower_bound_nanoseconds <= *fresh.objective_nanoseconds);
  CHECK(fresh.lower_bound_nanoseconds <= *after.objective_nanoseconds);
}

TEST_CASE("a plan file without a plan is no start") {
  const Graph graph = example_graph("tiny/gpt2_train");
  PlanOptions options = by_work(100'000'000, kDefaultGap);
  options.memory_limit = 1;
  const Plan none = plan_of(graph, "2,2", options);
  REQUIRE(none.status == PlanStatus::kInfeasible);
  options.memory_limit.reset();
  const auto mesh = value_of(DeviceMesh::parse("2,2"));
  const auto after =
      make_plan(graph, mesh, default_topology(), testing::standard_library(),
                from(options, none));
  REQUIRE(!after);
  CHECK(after.error().code == ErrorCode::kPlanNotRunnable);
  CHECK(after.error().notes.at(0) ==
        "its status is `infeasible`, expected `optimal` or `feasible`");
}

TEST_CASE("a plan that is proven is proven again from itself") {
  const Graph graph = example_graph("tiny/gpt2_train");
  const PlanOptions options = by_work(4'000'000'000, 0);
  const Plan before = plan_of(graph, "2,2", options);
  REQUIRE(before.status == PlanStatus::kOptimal);
  const Plan after = plan_of(graph, "2,2", from(options, before));
  CHECK(after.status == PlanStatus::kOptimal);
  CHECK(after.objective_nanoseconds == before.objective_nanoseconds);
}

TEST_CASE("a search starts from the plan of a graph with other layers") {
  const OpLibrary& library = testing::standard_library();
  const Graph three = test::residual_training(library, 3, "512", "256", "1024");
  const Graph four = test::residual_training(library, 4, "512", "256", "1024");
  const PlanOptions options = by_work(1'000'000'000, 0);
  const Plan before = plan_of(three, "2,2", options);
  const Plan after = plan_of(four, "2,2", from(options, before));
  const Plan fresh = plan_of(four, "2,2", options);
  CHECK(after.status == PlanStatus::kOptimal);
  CHECK(after.objective_nanoseconds == fresh.objective_nanoseconds);
  const EarlierPlanNote start = start_of(after);
  CHECK(start.led_to_plan);
  CHECK(start.matched_operators > 0);
  CHECK(start.matched_operators < start.operators);
}

TEST_CASE("a batch or a price that changes leaves the layouts as a start") {
  const OpLibrary& library = testing::standard_library();
  const Graph small = test::residual_training(library, 3, "512", "256", "1024");
  const Graph large =
      test::residual_training(library, 3, "1024", "256", "1024");
  PlanOptions options = by_work(1'000'000'000, 0);
  const Plan before = plan_of(small, "2,2", options);
  const Plan batch = plan_of(large, "2,2", from(options, before));
  CHECK(batch.status == PlanStatus::kOptimal);
  check_all_matched(batch, large);
  options.overlap = 0;
  const Plan price = plan_of(small, "2,2", from(options, before));
  CHECK(price.status == PlanStatus::kOptimal);
  check_all_matched(price, small);
}

TEST_CASE("a plan that cannot be a start is left out, and a note says so") {
  const OpLibrary& library = testing::standard_library();
  const Graph graph = test::residual_training(library, 2, "512", "256", "1024");
  PlanOptions options = by_work(1'000'000'000, 0);
  const Plan before = plan_of(graph, "2,2", options);
  const Plan other_mesh = plan_of(graph, "4", from(options, before));
  CHECK(other_mesh.status == PlanStatus::kOptimal);
  CHECK(!start_of(other_mesh).has_same_mesh_ndim);
  CHECK(!start_of(other_mesh).led_to_plan);
  const Graph mlp = test::mlp(library);
  const Plan other_graph = plan_of(mlp, "2,2", from(options, before));
  CHECK(other_graph.status == PlanStatus::kOptimal);
  CHECK(start_of(other_graph).matched_operators == 0);
  // A plan above the memory limit cannot be the answer.
  options.memory_limit = before.memory.peak_bytes * 3 / 4;
  const Plan tight = plan_of(graph, "2,2", from(options, before));
  const Plan fresh = plan_of(graph, "2,2", [&] {
    PlanOptions without = options;
    without.start_from = nullptr;
    return without;
  }());
  CHECK(tight.has_plan() == fresh.has_plan());
  if (tight.has_plan()) {
    CHECK(tight.memory.peak_bytes <= *options.memory_limit);
  }
}

// Checks that a search that starts from `before` keeps its promises for the
// question of `options`: its bound holds, it ends within the gap, and without a
// gap it has the cost of a search without the start. Returns whether there is a
// proof to compare with.
bool check_from(const Graph& graph, const Plan& before, PlanOptions options) {
  options.gap = 0;
  options.start_from = nullptr;
  const Plan fresh = plan_of(graph, "2,2", options);
  const Plan warm = plan_of(graph, "2,2", from(options, before));
  if (fresh.status != PlanStatus::kOptimal &&
      fresh.status != PlanStatus::kInfeasible) {
    // Neither bound exceeds the cost of the other plan.
    REQUIRE(fresh.has_plan());
    REQUIRE(warm.has_plan());
    CHECK(warm.lower_bound_nanoseconds <= *fresh.objective_nanoseconds);
    CHECK(fresh.lower_bound_nanoseconds <= *warm.objective_nanoseconds);
    return false;
  }
  CHECK(warm.status == fresh.status);
  CHECK(warm.objective_nanoseconds == fresh.objective_nanoseconds);
  options.gap = 0.05;
  const Plan near = plan_of(graph, "2,2", from(options, before));
  CHECK(near.has_plan() == fresh.has_plan());
  if (!fresh.has_plan()) return true;
  check_within_gap(near, 0.05);
  CHECK(near.lower_bound_nanoseconds <= *fresh.objective_nanoseconds);
  CHECK(*near.objective_nanoseconds >= *fresh.objective_nanoseconds);
  return true;
}

Pin replicated(const Graph& graph, std::size_t input) {
  return {.terms = {{PinTerm::Kind::kName,
                     graph.value(graph.inputs()[input].value).display_name()}},
          .layout = Layout::replicated(2)};
}

TEST_CASE("a bound holds for the question that the search starts with") {
  std::mt19937 draw(static_cast<std::uint32_t>(testing::property_seed()));
  int compared = 0;
  int proven = 0;
  const auto check = [&](const Graph& graph, const Plan& before,
                         const PlanOptions& options) {
    ++compared;
    proven += check_from(graph, before, options) ? 1 : 0;
  };
  for (int i = 0; i < (testing::full_counts() ? 6 : 2); ++i) {
    CAPTURE(i);
    const Graph graph = test::random_training_graph(draw, {.num_ops = 6});
    PlanOptions options = by_work(200'000'000, 0);
    options.keeps_warm_start = true;
    const Plan free = plan_of(graph, "2,2", options);
    REQUIRE(free.has_plan());
    options.pins = {replicated(graph, 0)};
    const Plan pinned = plan_of(graph, "2,2", options);
    REQUIRE(pinned.has_plan());
    check(graph, free, options);  // a pin is added
    options.pins = {replicated(graph, graph.inputs().size() - 1)};
    check(graph, pinned, options);  // another pin
    options.pins.clear();
    check(graph, pinned, options);  // no pin
    PlanOptions other = options;
    other.memory_limit = free.memory.peak_bytes - 1;
    check(graph, free, other);
    const Plan tight = plan_of(graph, "2,2", other);
    if (tight.has_plan()) check(graph, tight, options);
    other = options;
    other.overlap = 0;
    check(graph, free, other);
    other.overlap = 1;
    check(graph, free, other);
  }
  // Most questions are small enough for a proof: 12 to 14 of 14 with ten seeds.
  CHECK(proven * 5 >= compared * 4);
}

TEST_CASE("a plan is never dearer than the allowed plan that it starts from") {
  std::mt19937 draw(static_cast<std::uint32_t>(testing::property_seed()));
  for (int i = 0; i < 6; ++i) {
    CAPTURE(i);
    const Graph graph = test::random_training_graph(draw, {.num_ops = 8});
    PlanOptions options = by_work(200'000'000, 0);
    const Plan before = plan_of(graph, "2,2", options);
    REQUIRE(before.has_plan());
    options.gap = 1;
    for (const bool keeps : {false, true}) {
      options.keeps_warm_start = keeps;
      const Plan after = plan_of(graph, "2,2", from(options, before));
      CHECK(*after.objective_nanoseconds <= *before.objective_nanoseconds);
      options.pins = {replicated(graph, 0)};
      const Plan pinned = plan_of(graph, "2,2", from(options, before));
      options.pins.clear();
      const Plan freed = plan_of(graph, "2,2", from(options, pinned));
      CHECK(*freed.objective_nanoseconds <= *pinned.objective_nanoseconds);
    }
  }
}

TEST_CASE("messages are found again in the network of the same graph") {
  const Graph graph = example_graph("tiny/llama3_train");
  PlanOptions options = by_work(100'000'000, kDefaultGap);
  options.keeps_warm_start = true;
  const Plan plan = plan_of(graph, "2,4", options);
  REQUIRE(plan.warm_start.data != nullptr);
  const auto network_of = [&](const PlanProblem& problem) {
    return value_of(PlanNetwork::create(problem, {}));
  };
  const auto problem_with = [&](const std::vector<Pin>& pins) {
    options.pins = pins;
    return value_of(PlanProblem::create(
        graph, value_of(DeviceMesh::parse("2,4")), default_topology(),
        testing::standard_library(), options));
  };
  const PlanProblem problem = problem_with({});
  const PlanNetwork network = network_of(problem);
  const NetworkLabels labels(network);
  // Labels are unique, so that each message goes to its own variable.
  std::vector<std::uint64_t> sorted = labels.variables;
  std::sort(sorted.begin(), sorted.end());
  CHECK(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end());
  REQUIRE(plan.warm_start.data->messages != nullptr);
  const NamedMessages& start = *plan.warm_start.data->messages;
  const solver::Messages all = messages_from(labels, start);
  CHECK(all.told.size() == start.messages.size());
  for (const auto& [ends, told] : all.told) {
    CHECK(told.size() <=
          network.network().num_choices(solver::VariableId(ends.second)));
  }
  // Choices that a pin removes have no message; the others keep theirs.
  const PlanProblem fewer =
      problem_with({value_of(Pin::parse("lm_head.weight=R,R"))});
  const PlanNetwork pinned = network_of(fewer);
  const NetworkLabels of_pinned(pinned);
  const solver::Messages some = messages_from(of_pinned, start);
  CHECK(some.told.size() == all.told.size());
  CHECK(of_pinned.variables == labels.variables);
}

TEST_CASE("a plan that keeps a warm start equals one that does not") {
  const Graph graph = test::mlp(testing::standard_library());
  PlanOptions options = by_work(100'000'000, 0);
  Plan without = plan_of(graph, "2,2", options);
  CHECK(without.warm_start.data == nullptr);
  options.keeps_warm_start = true;
  Plan with = plan_of(graph, "2,2", options);
  with.solve_seconds = without.solve_seconds = 0;
  CHECK(with == without);
}

TEST_CASE("the choices of a plan are found again in its problem") {
  std::mt19937 draw(static_cast<std::uint32_t>(testing::property_seed()));
  for (int i = 0; i < 10; ++i) {
    const Graph graph = test::random_training_graph(draw, {.num_ops = 6});
    const PlanOptions options = by_work(100'000'000, 0);
    const Plan plan = plan_of(graph, "2,2", options);
    REQUIRE(plan.has_plan());
    const PlanProblem problem = value_of(PlanProblem::create(
        graph, value_of(DeviceMesh::parse("2,2")), default_topology(),
        testing::standard_library(), options));
    const EarlierPlanMatch match = match_earlier_plan(problem, plan);
    CHECK(match.start.matched_operators == match.start.operators);
    CHECK(match.start.matched_tensors == match.start.tensors);
    for (std::size_t v = 0; v < problem.variables().size(); ++v) {
      CHECK(!match.kept.left[v].empty());
      CHECK(!match.is_new[v]);
    }
  }
}

TEST_CASE("the part around a plan has the choices of equal layers") {
  const Graph graph = example_graph("tiny/llama3_train");
  PlanOptions options = by_work(100'000'000, kDefaultGap);
  const Plan plan = plan_of(graph, "2,4", options);
  // A layout that the plan does not have.
  const auto head = std::find_if(
      plan.values.begin(), plan.values.end(),
      [](const PlannedValue& v) { return v.name == "lm_head.weight"; });
  REQUIRE(head != plan.values.end());
  const bool is_replicated = to_string(head->tensor.layout) == "R,R";
  options.pins = {value_of(Pin::parse(is_replicated ? "lm_head.weight=S(0),S(1)"
                                                    : "lm_head.weight=R,R"))};
  const PlanProblem problem = value_of(PlanProblem::create(
      graph, value_of(DeviceMesh::parse("2,4")), default_topology(),
      testing::standard_library(), options));
  const EarlierPlanMatch match = match_earlier_plan(problem, plan);
  const PlanSolution solution = solve_plan(problem);
  REQUIRE(solution.assignment.has_value());
  const Restriction alike =
      choices_of_alike(problem, match, *solution.assignment);
  std::size_t freed = 0;
  for (std::size_t v = 0; v < alike.left.size(); ++v) {
    const auto& own = match.kept.left[v];
    const auto& all = alike.left[v];
    CHECK(std::binary_search(all.begin(), all.end(),
                             solution.assignment->choices[v]));
    CHECK(std::includes(all.begin(), all.end(), own.begin(), own.end()));
    freed += own.empty() ? 1 : 0;
  }
  // Each hop frees more variables, until all are free that buffers connect.
  Restriction around;
  for (const int hops : {0, 1, 2, 1000}) {
    around = freed_around(problem, match, hops);
    const auto now = static_cast<std::size_t>(
        std::count_if(around.left.begin(), around.left.end(),
                      [](const auto& left) { return left.empty(); }));
    CHECK(now >= freed);
    freed = now;
  }
  CHECK(2 * freed > problem.variables().size());
  for (const PlanBuffer& buffer : problem.buffers()) {
    const bool is_free = around.left[buffer.producer.index()].empty();
    for (const BufferUse& use : buffer.uses) {
      CHECK(around.left[use.variable.index()].empty() == is_free);
    }
  }
}

TEST_CASE("Llama 3 8B is planned again after one pin changed") {
  if (!testing::full_counts()) return;
  const Graph graph = example_graph("llama3_8b_train");
  PlanOptions options = by_work(40'000'000'000, kDefaultGap);
  options.overlap = default_topology().overlap_discount.value;
  options.memory_limit = default_topology().allocatable_bytes();
  options.keeps_warm_start = true;
  Plan plan = plan_of(graph, "8,8", options);
  check_within_gap(plan, kDefaultGap);
  for (const char* pin : {"lm_head.weight=S(0),R", "lm_head.weight=R,S(0)"}) {
    PlanOptions other = from(options, plan);
    other.pins = {value_of(Pin::parse(pin))};
    plan = plan_of(graph, "8,8", other);
    check_within_gap(plan, kDefaultGap);
    check_all_matched(plan, graph);
  }
}

}  // namespace
}  // namespace shardprop

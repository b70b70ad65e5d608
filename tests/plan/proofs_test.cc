// Proofs against enumeration: small graphs with every feature that a price has,
// at prices at which plans shard.
#include "plan/exhaustive.h"
#include "plan/exhaustive_windows.h"
#include "plan/layered_training.h"
#include "plan/plan_features.h"
#include "plan/problem/build/cached_layouts.h"
#include "plan/search/solve_plan.h"
#include "plan/training_graphs.h"
#include "support/property.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

// 40 graphs every day, 200 with SHARDPROP_FULL=1.
TEST_CASE("random training graphs cost what enumeration finds") {
  std::mt19937 draw(54);
  constexpr double kMostCombinations = 3'000;
  const int required = testing::full_counts() ? 200 : 40;
  test::PlanFeatures::Counts features = test::PlanFeatures::none();
  int counted = 0;
  for (int i = 0; counted < required && i < 50 * required; ++i) {
    CAPTURE(i);
    // Graphs as small as the others rarely have a window for each reduction.
    const bool is_layered = i % 4 == 3;
    const Graph graph = is_layered
                            ? test::layered_training(2)
                            : test::random_training_graph(draw, {1 + i % 3});
    test::TrainingSettings settings = test::random_settings(draw);
    if (is_layered) settings.options.pins = test::pins_of_batch(2);
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
  for (const char* feature : {Features::kOnceAStep, Features::kAccumulated,
                              Features::kExposed, Features::kSharded}) {
    CAPTURE(std::string(feature));
    CHECK(features.at(feature) > 0);
  }
}

// ---- a copy that a late reader shares

// The gradient of w is also read by `mul`, whose result is returned: a program
// in which it is reduced in every micro-batch if mul reads it reduced.
Graph shared_gradient() {
  GraphBuilder b("shared_gradient", testing::standard_library());
  const std::vector<GivenArgument> two = {{"", TensorArg{0}},
                                          {"", TensorArg{1}}};
  const ValueId x = test::add_input(b, InputKind::kUser, "x", "f32[512,512]");
  const ValueId w =
      test::add_input(b, InputKind::kParameter, "w", "f32[512,512]");
  const ValueId y = test::add_op(b, "aten.mm.default", two, {x, w}, "y");
  const ValueId xt = test::add_op(
      b, "aten.permute.default",
      {{"", TensorArg{0}}, {"", std::vector<std::int64_t>{1, 0}}}, {x}, "xt");
  const ValueId g = test::add_op(b, "aten.mm.default", two, {xt, y}, "g");
  const ValueId m = test::add_op(b, "aten.mul.Tensor", two, {g, g}, "m");
  b.add_output({.value = m});
  b.add_output({.value = g, .kind = OutputKind::kGradient, .target = w});
  return value_of(std::move(b).build());
}

TEST_CASE("a copy that more than the optimizer reads is made each time") {
  const Graph graph = shared_gradient();
  test::TrainingSettings settings;
  settings.options.accumulate = 8;
  settings.options.optimizer = Optimizer::kSgd;
  settings.topology = testing::dear_compute();
  settings.mesh = "2";
  const PlanProblem problem = test::problem_with(graph, settings);
  // One copy of the gradient for whoever reads it.
  const ValueId gradient = graph.outputs()[1].value;
  const PlanBufferId id = problem.value(gradient).buffer;
  const PlanBuffer& buffer = problem.buffer(id);
  PlanAssignment plan = *solve_plan(problem).assignment;
  plan.copies = {{.buffer = id}};
  for (auto& read : plan.read) {
    std::fill(read.begin(), read.end(), std::nullopt);
  }
  std::vector<std::size_t> late;
  for (std::size_t u = 0; u < buffer.uses.size(); ++u) {
    const PlanVariableId user = buffer.uses[u].variable;
    const std::vector<bool>& is_late =
        problem.variable(user).choices->reduced_late;
    const auto choice = std::find(is_late.begin(), is_late.end(), true);
    if (choice != is_late.end()) {
      late.push_back(u);
      plan.choices[user.index()] =
          static_cast<std::uint32_t>(choice - is_late.begin());
    }
    plan.read[id.index()][u] = 0;
  }
  REQUIRE(late.size() == 1);
  REQUIRE(buffer.uses.size() > 1);
  const auto once = [&](std::size_t copy) -> bool {
    return copies_once_a_step(problem, plan)[copy];
  };
  CHECK_FALSE(once(0));
  for (auto& read : plan.read[id.index()]) read.reset();
  CHECK_FALSE(once(0));
  plan.read[id.index()][late[0]] = 0;
  CHECK(once(0));
  // So is the source of that copy, unless something else is made of it, too.
  plan.copies.push_back({.buffer = id, .source = 0});
  CHECK_FALSE(once(0));
  plan.read[id.index()][late[0]] = 1;
  CHECK(once(0));
  CHECK(once(1));
  plan.copies.push_back({.buffer = id, .source = 0});
  CHECK_FALSE(once(0));
  CHECK(once(1));
  CHECK_FALSE(once(2));

  const PlanSolution solution = solve_plan(problem);
  CHECK(solution.evaluation.objective == test::Exhaustive(problem).least());
  CHECK(solution.lower_bound == solution.evaluation.objective);
}

// ---- moves near the limit of what can be reached

TEST_CASE("two layouts are cached if each can be reached, whatever the sum") {
  auto kind = std::make_shared<BufferClass>();
  kind->bytes = {8, 4, 2};
  kind->moves.assign(9, {.nanoseconds = kUnreachable});
  PlanBuffer buffer;
  buffer.kind = kind;
  CHECK_FALSE(transition(buffer, {0, 0}, {1, 2}).is_possible);
  CHECK_FALSE(transition(buffer, {0, 0}, {1, 1}).is_possible);
  CHECK(transition(buffer, {0, 0}, {0, 0}).is_possible);
  kind->moves[1].nanoseconds = kUnreachable - 1;
  CHECK_FALSE(transition(buffer, {0, 0}, {1, 2}).is_possible);
  kind->moves[2].nanoseconds = kUnreachable - 1;
  const Transition both = transition(buffer, {0, 0}, {1, 2});
  CHECK(both.is_possible);
  CHECK(both.nanoseconds == 2 * (kUnreachable - 1));
  CHECK(both.transfers.size() == 2);
}

TEST_CASE("plans with moves of up to six days cost what enumeration finds") {
  std::mt19937 draw(57);
  const int required = testing::full_counts() ? 200 : 20;
  int counted = 0;
  int slow = 0;
  for (int i = 0; counted < required && i < 50 * required; ++i) {
    CAPTURE(i);
    const Graph graph = test::random_training_graph(draw, {1 + i % 2});
    test::TrainingSettings settings = test::random_settings(draw);
    settings.mesh = "2";
    // 1 MiB then takes 2^43 to 2^49 ns.
    settings.topology = test::slow_links(std::ldexp(1.0, 33 + i % 7));
    const PlanProblem problem = test::problem_with(graph, settings);
    if (test::Exhaustive(problem).size() > 1'000) continue;
    std::int64_t most = 0;
    for (const PlanBuffer& buffer : problem.buffers()) {
      for (const BufferClass::Move& move : buffer.kind->moves) {
        if (move.is_reachable()) most = std::max(most, move.transfer());
      }
    }
    if (most > std::int64_t{1} << 49) continue;
    ++counted;
    slow += most >= std::int64_t{1} << 46 ? 1 : 0;
    const PlanSolution solution = solve_plan(problem);
    REQUIRE(solution.assignment);
    const std::int64_t least = test::ExhaustiveWindows(problem).least();
    CHECK(solution.evaluation.objective == least);
    CHECK(solution.lower_bound <= least);
  }
  CHECK(counted == required);
  CHECK(slow > 0);
}

}  // namespace
}  // namespace shardprop

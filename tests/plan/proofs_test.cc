// Proofs against enumeration: small graphs with every feature that a price has,
// at prices at which plans shard.
#include "plan/enumerated_network.h"
#include "plan/exhaustive.h"
#include "plan/exhaustive_windows.h"
#include "plan/explain/alternatives.h"
#include "plan/network/plan_network.h"
#include "plan/problem/build/cached_layouts.h"
#include "plan/search/solve_plan.h"
#include "plan/small_graphs.h"
#include "support/dear_topology.h"
#include "support/property.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/solver/checker.h>
#include <shardprop/solver/solve.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

// A few operators over one shape. Gradients of one or two parameters are any
// values, which other operators, results and gradients may read, too.
Graph random_training_graph(std::mt19937& draw, int num_ops,
                            bool with_input = true) {
  GraphBuilder b("random_training", testing::standard_library());
  const auto below = [&](std::size_t n) { return draw() % n; };
  std::vector<ValueId> values;
  if (with_input) {
    values.push_back(test::add_input(b, InputKind::kUser, "x", "f32[512,512]"));
  }
  values.push_back(
      test::add_input(b, InputKind::kParameter, "w", "f32[512,512]"));
  std::vector<ValueId> parameters{values.back()};
  if (below(4) == 0) {
    parameters.push_back(
        test::add_input(b, InputKind::kParameter, "v", "f32[512,512]"));
    values.push_back(parameters.back());
  }
  const std::size_t num_inputs = values.size();
  std::vector<bool> used(num_inputs, true);
  const auto operand = [&] {
    const std::size_t v = below(values.size());
    used[v] = true;
    return values[v];
  };
  const std::vector<GivenArgument> two = {{"", TensorArg{0}},
                                          {"", TensorArg{1}}};
  for (int i = 0; i < num_ops; ++i) {
    const std::string name = "n" + std::to_string(i);
    const bool is_product = below(3) != 0;
    if (is_product) {
      const ValueId left = operand();
      values.push_back(
          test::add_op(b, below(3) == 0 ? "aten.mul.Tensor" : "aten.mm.default",
                       two, {left, operand()}, name.c_str()));
    } else {
      values.push_back(test::add_op(b, "aten.relu.default",
                                    {{"", TensorArg{0}}}, {operand()},
                                    name.c_str()));
    }
    used.push_back(false);
  }
  for (const ValueId parameter : parameters) {
    const std::size_t gradient = num_inputs + below(values.size() - num_inputs);
    used[gradient] = true;
    b.add_output({.value = values[gradient],
                  .kind = OutputKind::kGradient,
                  .target = parameter});
  }
  for (std::size_t v = num_inputs; v < values.size(); ++v) {
    if (!used[v]) b.add_output({.value = values[v]});
  }
  return value_of(std::move(b).build());
}

// Links of one node, `times` as slow as usual, without latency.
Topology slow_node(double times) {
  Topology topology = default_topology();
  topology.measured.clear();
  topology.node_reduces = false;
  topology.launch_us.value = 0;
  topology.node_latency_us.value = 0;
  topology.network_latency_us.value = 0;
  topology.node_bandwidth_gbps.value /= times;
  topology.network_bandwidth_gbps.value /= times;
  topology.all_to_all_gbps.value /= times;
  return topology;
}

struct DrawnProblem {
  PlanOptions options;
  Topology topology;
  std::string mesh;
};

DrawnProblem draw_problem(std::mt19937& draw) {
  const auto below = [&](std::size_t n) { return draw() % n; };
  DrawnProblem out;
  out.options.overlap = std::array{0.0, 0.5, 1.0}[below(3)];
  out.options.accumulate = std::array{1, 2, 7, 8}[below(4)];
  out.options.optimizer = below(5) == 0   ? Optimizer::kNone
                          : below(2) == 0 ? Optimizer::kSgd
                                          : Optimizer::kAdamW;
  out.options.threads = 1;
  out.topology = below(2) == 0
                     ? testing::dear_compute()
                     : slow_node(std::array{0.25, 1.0, 8.0}[below(3)]);
  out.mesh = below(2) == 0 ? "2" : "4";
  return out;
}

PlanProblem drawn_problem(const Graph& graph, const DrawnProblem& drawn) {
  return value_of(PlanProblem::create(
      graph, value_of(DeviceMesh::parse(drawn.mesh.c_str())), drawn.topology,
      testing::standard_library(), drawn.options));
}

// How often optima made use of what is tested.
struct Features {
  int late = 0;     // a gradient is accumulated before it is reduced
  int shared = 0;   // a copy of such a gradient has another reader
  int exposed = 0;  // more may overlap than there is compute
  int sharded = 0;  // a parameter is sharded
  int limited = 0;  // the memory limit makes the plan more expensive
  int infeasible = 0;
};

void count_features(const PlanProblem& problem, const PlanSolution& solution,
                    Features& features) {
  const PlanAssignment& plan = *solution.assignment;
  const std::vector<bool> once = copies_once_a_step(problem, plan);
  bool late = false;
  bool shared = false;
  bool sharded = false;
  for (std::size_t v = 0; v < plan.choices.size(); ++v) {
    const PlanVariable& variable = problem.variables()[v];
    if (variable.kind == PlanVariable::Kind::kInput) {
      const Layout& layout = problem.layouts()[variable.choices->layout(
          plan.choices[v], variable.uses.size())];
      sharded = sharded || layout[0].is_shard();
    }
    if (!problem.is_reduced_late(variable, plan.choices[v])) continue;
    for (std::size_t u = 0; u < variable.uses.size(); ++u) {
      const PlanBufferId buffer = problem.value(variable.uses[u]).buffer;
      const auto& copy = plan.read[buffer.index()][variable.use_places[u]];
      late = late || (copy && once[*copy]);
      shared = shared || (copy && !once[*copy]);
    }
  }
  features.late += late ? 1 : 0;
  features.shared += shared ? 1 : 0;
  features.sharded += sharded ? 1 : 0;
  features.exposed += solution.evaluation.exposed() > 0 ? 1 : 0;
}

TEST_CASE("random training graphs cost what counting through them says") {
  std::mt19937 draw(54);
  constexpr double kMostCombinations = 3'000;
  const int required = testing::full_counts() ? 200 : 40;
  Features features;
  int counted = 0;
  for (int i = 0; counted < required && i < 50 * required; ++i) {
    CAPTURE(i);
    const Graph graph = random_training_graph(draw, 1 + i % 3);
    const DrawnProblem drawn = draw_problem(draw);
    const PlanProblem problem = drawn_problem(graph, drawn);
    if (test::Exhaustive(problem).size() > kMostCombinations) continue;
    ++counted;
    const PlanSolution solution = solve_plan(problem);
    REQUIRE(solution.assignment);
    const std::int64_t least = test::ExhaustiveWindows(problem).least();
    CHECK(solution.evaluation.objective == least);
    CHECK(solution.lower_bound == least);
    CHECK(solution.status == PlanStatus::kOptimal);
    count_features(problem, solution, features);
  }
  CHECK(counted == required);
  MESSAGE(features.late << " reduced late, " << features.shared << " shared, "
                        << features.exposed << " exposed, " << features.sharded
                        << " sharded of " << counted);
  CHECK(features.late > 0);
  CHECK(features.exposed > 0);
  CHECK(features.sharded > 0);
}

// Of a network's plans.
struct LeastOfNetwork {
  std::optional<std::int64_t> cost;  // of plans that fit
  // Of those whose bytes, as the network counts them, fit, too.
  std::optional<std::int64_t> counted_cost;
  std::int64_t peak_bytes = std::numeric_limits<std::int64_t>::max();
};

void lower_to(std::optional<std::int64_t>& least, std::int64_t cost) {
  least = std::min(least.value_or(cost), cost);
}

// Checks each plan against what the network says of it.
LeastOfNetwork least_by_network(const PlanProblem& problem,
                                const PlanNetwork& network,
                                std::optional<std::int64_t> limit,
                                std::size_t most, bool& complete) {
  LeastOfNetwork least;
  int broken = 0;
  int costlier = 0;  // than the network says
  complete = test::EnumeratedNetwork(network).each(
      most, [&](const solver::Assignment& choices, std::int64_t cost) {
        const PlanEvaluation judged =
            evaluate(problem, network.decode(network.assignment(choices)));
        broken += judged.broken.empty() ? 0 : 1;
        costlier += judged.objective - judged.exposed() > cost ? 1 : 0;
        least.peak_bytes = std::min(least.peak_bytes, judged.peak_bytes);
        if (limit && judged.peak_bytes > *limit) return;
        lower_to(least.cost, judged.objective);
        const auto checked = solver::evaluate(network.network(), choices);
        if (checked->feasible()) lower_to(least.counted_cost, judged.objective);
      });
  CHECK(broken == 0);
  CHECK(costlier == 0);
  // Bytes are counted from below: no plan that fits is lost.
  CHECK(least.counted_cost == least.cost);
  return least;
}

TEST_CASE("plans of random training graphs cost what their networks say") {
  std::mt19937 draw(55);
  constexpr std::size_t kMostAssignments = 6'000;
  const int required = testing::full_counts() ? 200 : 12;
  Features features;
  int counted = 0;
  for (int i = 0; counted < required && i < 50 * required; ++i) {
    CAPTURE(i);
    const Graph graph =
        random_training_graph(draw, 1 + i % 2, /*with_input=*/i % 4 == 0);
    DrawnProblem drawn = draw_problem(draw);
    drawn.mesh = "2";
    const PlanProblem free = drawn_problem(graph, drawn);
    const PlanNetwork free_network = value_of(PlanNetwork::create(free, {}));
    bool complete = true;
    const auto least = least_by_network(free, free_network, std::nullopt,
                                        kMostAssignments, complete);
    if (!complete) continue;
    const PlanSolution unlimited = solve_plan(free);
    REQUIRE(unlimited.assignment);
    CHECK(unlimited.evaluation.objective == *least.cost);
    CHECK(unlimited.lower_bound == *least.cost);
    // From what no plan fits into to what the cheapest one needs.
    const std::int64_t peak = unlimited.evaluation.peak_bytes;
    const std::int64_t limit =
        least.peak_bytes + (peak - least.peak_bytes) *
                               (static_cast<std::int64_t>(draw() % 8) - 1) / 6;
    drawn.options.memory_limit = limit;
    const PlanProblem problem = drawn_problem(graph, drawn);
    const PlanNetwork network =
        value_of(PlanNetwork::create(problem, {.memory_limit = limit}));
    const auto least_limited = least_by_network(problem, network, limit,
                                                4 * kMostAssignments, complete)
                                   .cost;
    if (!complete) continue;
    ++counted;
    const PlanSolution solution = solve_plan(problem);
    CAPTURE(std::string(to_string(solution.status)));
    if (!least_limited) {
      CHECK_FALSE(solution.assignment);
      ++features.infeasible;
      continue;
    }
    CHECK(solution.lower_bound <= *least_limited);
    CHECK(solution.status != PlanStatus::kInfeasible);
    if (!solution.assignment) continue;
    CHECK(solution.evaluation.objective >= *least_limited);
    CHECK(solution.evaluation.peak_bytes <= limit);
    features.limited += *least_limited > *least.cost ? 1 : 0;
    count_features(problem, solution, features);
  }
  CHECK(counted == required);
  MESSAGE(features.late << " reduced late, " << features.shared << " shared, "
                        << features.exposed << " exposed, " << features.sharded
                        << " sharded, " << features.limited << " limited, "
                        << features.infeasible << " infeasible of " << counted);
  CHECK(features.limited + features.infeasible > 0);
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
  DrawnProblem drawn;
  drawn.options.accumulate = 8;
  drawn.options.optimizer = Optimizer::kSgd;
  drawn.topology = testing::dear_compute();
  drawn.mesh = "2";
  const PlanProblem problem = drawn_problem(graph, drawn);
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

TEST_CASE("plans whose moves take up to six days cost what counting says") {
  std::mt19937 draw(57);
  const int required = testing::full_counts() ? 200 : 20;
  int counted = 0;
  int slow = 0;
  for (int i = 0; counted < required && i < 50 * required; ++i) {
    CAPTURE(i);
    const Graph graph = random_training_graph(draw, 1 + i % 2);
    DrawnProblem drawn = draw_problem(draw);
    drawn.mesh = "2";
    // 1 MiB then takes 2^43 to 2^49 ns.
    drawn.topology = slow_node(std::ldexp(1.0, 33 + i % 7));
    const PlanProblem problem = drawn_problem(graph, drawn);
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

// ---- alternatives

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

TEST_CASE("an alternative costs no less than the best plan that is forced") {
  std::mt19937 draw(56);
  constexpr std::size_t kMostAssignments = 20'000;
  const int required = testing::full_counts() ? 400 : 40;
  int counted = 0;
  int exact = 0;
  int outside = 0;
  for (int i = 0; counted < required && i < 50 * required; ++i) {
    CAPTURE(i);
    const Graph graph = random_training_graph(draw, 1 + i % 3);
    DrawnProblem drawn = draw_problem(draw);
    drawn.mesh = "2";
    const PlanProblem problem = drawn_problem(graph, drawn);
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
      outside += other->nanoseconds < forced ? 1 : 0;
      exact += other->nanoseconds == forced ? 1 : 0;
    }
  }
  MESSAGE(counted << " alternatives, " << exact
                  << " cost as much as the best plan that is forced");
  CHECK(counted >= required);
  CHECK(3 * exact > counted);
  // An alternative may read a copy that another use made for itself. That is a
  // plan, but it need not be in the space of copies.
  CHECK(20 * outside < counted);
}

}  // namespace
}  // namespace shardprop

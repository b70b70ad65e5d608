// Equal layers choose alike: the groups, the network with shared variables and
// the optimum of the alike space.
#include "plan/problem/equal_choices.h"

#include "graph/analysis/blocks.h"
#include "plan/enumerated_network.h"
#include "plan/exhaustive.h"
#include "plan/exhaustive_windows.h"
#include "plan/layered_graphs.h"
#include "plan/network/plan_network.h"
#include "plan/search/parts/free_layers_bound.h"
#include "plan/search/parts/restricted_problem.h"
#include "plan/search/solve_plan.h"
#include "plan/training_graphs.h"
#include "plan/two_spaces.h"
#include "support/property.h"

#include <shardprop/solver/checker.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;
using After = test::LayeredGraph::After;

// ---- groups

// Returns the names of the inputs that choose alike, as "w1=w0 w2=w0".
std::string grouped_inputs(const PlanProblem& problem) {
  const auto name = [&](PlanVariableId id) {
    return problem.graph().value(problem.variable(id).makes[0]).name;
  };
  std::string out;
  for (std::size_t v = 0; v < problem.variables().size(); ++v) {
    const PlanVariableId id(v);
    if (problem.variable(id).kind != PlanVariable::Kind::kInput) continue;
    const PlanVariableId first = problem.equal_choices().first(id);
    if (first == id) continue;
    out += (out.empty() ? "" : " ") + name(id) + "=" + name(first);
  }
  return out;
}

// Returns the names of the operators of the first runs that choose alike.
std::string grouped_operators(const PlanProblem& problem) {
  const Graph& graph = problem.graph();
  std::map<PlanVariableId, std::set<std::string>> groups;
  for (std::size_t v = 0; v < problem.variables().size(); ++v) {
    const PlanVariable& variable = problem.variables()[v];
    if (variable.kind != PlanVariable::Kind::kOperator) continue;
    const Node& node = graph.nodes()[variable.index];
    if (node.runs_again()) continue;
    groups[problem.equal_choices().first(PlanVariableId(v))].insert(node.name);
  }
  std::set<std::string> lines;
  for (const auto& [first, names] : groups) {
    std::string line;
    for (const std::string& name : names) line += name + " ";
    lines.insert(line);
  }
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

PlanProblem three_layers(const Graph& graph, const PlanOptions& options) {
  return value_of(PlanProblem::create(graph, value_of(DeviceMesh::parse("2")),
                                      testing::dear_compute(),
                                      testing::standard_library(), options));
}

TEST_CASE("counterparts with the same choices choose alike") {
  const Graph graph =
      test::LayeredGraph(
          {.layers = 4, .after = After::kAdd, .has_backward_phase = false})
          .build();
  PlanOptions options;
  CHECK(grouped_inputs(three_layers(graph, options)) == "w1=w0 w2=w0 w3=w0");
  options.pins.push_back(value_of(Pin::parse("net.w1=S(0)")));
  CHECK(grouped_inputs(three_layers(graph, options)) == "w2=w0 w3=w0");
  options.layers = Layers::kFree;
  CHECK(three_layers(graph, options).equal_choices().empty());
}

TEST_CASE("layers choose alike whatever runs again in them") {
  const auto plain = std::make_shared<const Graph>(
      test::LayeredGraph({.layers = 6, .after = After::kRelu}).build());
  PlanOptions options;
  const std::string groups = grouped_inputs(three_layers(*plain, options));
  CHECK_FALSE(groups.empty());
  for (const char* rule : {"full", "full:1", "full:2", "full:3"}) {
    for (const bool is_compiled : {false, true}) {
      CAPTURE(rule);
      CAPTURE(is_compiled);
      const auto graph = value_of(
          running_graph(plain, testing::standard_library(),
                        {is_compiled, value_of(Recompute::parse(rule))}));
      const PlanProblem problem = three_layers(*graph, options);
      CHECK(grouped_inputs(problem) == groups);
      CHECK(grouped_operators(problem) ==
            grouped_operators(three_layers(*plain, options)));
    }
  }
}

TEST_CASE("a graph without layers has no groups") {
  const Graph graph = test::mlp(testing::standard_library());
  CHECK(three_layers(graph, {}).equal_choices().empty());
}

// ---- the network with shared variables

// AssignedNetwork makes assignments of a network from those of its plan
// problem's variables and live intervals.
class AssignedNetwork {
 public:
  explicit AssignedNetwork(const PlanNetwork& network) : network_(network) {}

  // `choices` is indexed by PlanVariableId, `cached` by buffer and interval.
  // The remaining variables get the first choice that is not forbidden.
  solver::Assignment of(
      const std::vector<std::uint32_t>& choices,
      const std::vector<std::vector<std::uint32_t>>& cached) const {
    constexpr std::uint32_t kUnknown = ~std::uint32_t{0};
    solver::Assignment out(network_.num_variables(), kUnknown);
    for (std::size_t v = 0; v < choices.size(); ++v) {
      out[network_.variable(PlanVariableId(v)).index()] = choices[v];
    }
    for (std::size_t b = 0; b < cached.size(); ++b) {
      const auto intervals = network_.live_intervals(PlanBufferId(b));
      for (std::size_t i = 0; i < intervals.size(); ++i) {
        out[intervals[i].variable.index()] = cached[b][i];
      }
    }
    for (std::size_t v = 0; v < out.size(); ++v) {
      if (out[v] == kUnknown) out[v] = first_allowed(v, out);
    }
    return out;
  }

 private:
  std::uint32_t first_allowed(std::size_t v,
                              const solver::Assignment& others) const {
    const solver::Problem& network = network_.network();
    const auto choices =
        static_cast<std::uint32_t>(network.num_choices(solver::VariableId(v)));
    for (std::uint32_t c = 0; c < choices; ++c) {
      const bool is_allowed = std::none_of(
          network.edges().begin(), network.edges().end(),
          [&](const solver::Edge& edge) {
            if (edge.b.index() != v) return false;
            const solver::Table table = network.table(edge.table);
            return solver::is_forbidden(
                table.costs[others[edge.a.index()] * table.columns + c]);
          });
      if (is_allowed) return c;
    }
    return 0;
  }

  const PlanNetwork& network_;
};

// Returns random cached layouts, the same for live intervals that are one
// variable of the network.
std::vector<std::vector<std::uint32_t>> random_cached(
    const PlanNetwork& network, std::mt19937& draw) {
  std::vector<std::uint32_t> of_variable(network.num_variables());
  for (std::uint32_t& one : of_variable) one = draw();
  std::vector<std::vector<std::uint32_t>> out;
  for (std::size_t b = 0; b < network.problem().buffers().size(); ++b) {
    out.emplace_back();
    for (const LiveInterval& i : network.live_intervals(PlanBufferId(b))) {
      out.back().push_back(of_variable[i.variable.index()] %
                           static_cast<std::uint32_t>(i.sets->size()));
    }
  }
  return out;
}

std::vector<std::uint32_t> random_choices(const PlanProblem& problem,
                                          std::mt19937& draw) {
  std::vector<std::uint32_t> out;
  for (std::size_t v = 0; v < problem.variables().size(); ++v) {
    const std::size_t first =
        problem.equal_choices().first(PlanVariableId(v)).index();
    out.push_back(first == v
                      ? static_cast<std::uint32_t>(
                            draw() % problem.variables()[v].choices->size())
                      : out[first]);
  }
  return out;
}

// Returns whether only some of the equal layers run their operators again.
bool has_two_classes(const Graph& graph) {
  const Blocks blocks(graph);
  std::set<std::uint64_t> codes;
  for (const Block& block : blocks.blocks()) {
    if (block.run) codes.insert(block.code);
  }
  return codes.size() > blocks.runs().size();
}

TEST_CASE("shared variables cost and use what those of each layer do") {
  std::mt19937 draw(58);
  int compared = 0;
  int shared = 0;
  int two_classes = 0;
  for (int i = 0; i < testing::scaled(120); ++i) {
    CAPTURE(i);
    // With nine layers, some slots imply the memory of others.
    const auto running =
        test::random_running(test::random_layered_graph(draw, 9), draw);
    if (!running) continue;
    const Graph& graph = *running;
    const auto cut = [&](const PlanProblem& problem) {
      return test::few_choices(problem, draw);
    };
    const test::TwoSpaces spaces(graph, test::random_settings(draw), cut);
    two_classes += has_two_classes(graph) ? 1 : 0;
    const PlanProblem& alike = spaces.alike.problem();
    const PlanProblem& free = spaces.free.problem();
    if (alike.equal_choices().empty()) continue;
    NetworkOptions options;
    if (i % 2 == 0) options.memory_limit = std::int64_t{1} << 40;
    for (std::size_t w = 0; w < alike.window_loads().size(); ++w) {
      options.overlap_multipliers.push_back(
          static_cast<std::int64_t>(draw() % (kOverlapMultiplierUnit + 1)));
    }
    const PlanNetwork few = value_of(PlanNetwork::create(alike, options));
    const PlanNetwork many = value_of(PlanNetwork::create(free, options));
    shared += few.num_variables() < many.num_variables() ? 1 : 0;
    for (int k = 0; k < 20; ++k) {
      const auto choices = random_choices(alike, draw);
      const auto cached = random_cached(few, draw);
      const auto a = solver::evaluate(few.network(),
                                      AssignedNetwork(few).of(choices, cached));
      const auto b = solver::evaluate(
          many.network(), AssignedNetwork(many).of(choices, cached));
      REQUIRE(a);
      REQUIRE(b);
      compared += a->forbidden_edges.empty() ? 1 : 0;
      CHECK(a->forbidden_edges.empty() == b->forbidden_edges.empty());
      CHECK((a->cost == b->cost));
      CHECK((a->peak_bytes == b->peak_bytes));
    }
  }
  CHECK(compared > 50);
  CHECK(shared > 20);
  CHECK(two_classes > 10);
}

// ---- the optimum

struct Found {
  int runs = 0;
  int second_runs = 0;     // graphs in which operators run again
  int more_expensive = 0;  // than the free optimum
  int free_bounds = 0;
  int near_free_bounds = 0;  // within 5 % of the best free plan
  int limit_binds = 0;
  int missed = 0;  // a better plan within the memory limit
};

constexpr std::size_t kMostAssignments = 3'000;

// Returns the least cost of the plans of all assignments of the network that
// cost at most `most_cost`; empty if there are too many.
std::optional<std::int64_t> least_judged(const PlanProblem& problem,
                                         const NetworkOptions& options,
                                         std::int64_t most_cost) {
  const PlanNetwork network = value_of(PlanNetwork::create(problem, options));
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  bool is_dearer = false;
  const bool is_complete = test::EnumeratedNetwork(network).each(
      kMostAssignments,
      [&](const solver::Assignment& choices, std::int64_t cost) {
        const PlanEvaluation judged =
            evaluate(problem, network.decode(network.assignment(choices)));
        CHECK(judged.broken.empty());
        is_dearer = is_dearer || judged.objective - judged.exposed() > cost;
        if (options.memory_limit && judged.peak_bytes > *options.memory_limit) {
          return;
        }
        least = std::min(least, judged.objective);
      },
      most_cost);
  CHECK_FALSE(is_dearer);
  if (!is_complete) return std::nullopt;
  return least;
}

void check_limited(const Graph& graph, test::TrainingSettings settings,
                   const Restriction& restriction, const PlanSolution& free,
                   Found& found) {
  settings.options.memory_limit = free.evaluation.peak_bytes / 100 * 95;
  const PlanProblem whole = test::problem_with(graph, settings);
  const RestrictedProblem part(whole, restriction);
  const PlanSolution limited = solve_plan(part.problem());
  if (!limited.assignment) return;
  const auto least = least_judged(
      part.problem(), {.memory_limit = settings.options.memory_limit},
      limited.evaluation.objective);
  if (!least) return;
  CHECK(limited.lower_bound <= *least);
  CHECK(limited.evaluation.objective >= *least);
  found.limit_binds +=
      limited.evaluation.objective > free.evaluation.objective ? 1 : 0;
  found.missed += limited.evaluation.objective > *least ? 1 : 0;
}

void check_optimum(const Graph& graph, const test::TrainingSettings& settings,
                   std::mt19937& draw, Found& found) {
  const auto cut = [&](const PlanProblem& problem) {
    return test::few_choices(problem, draw);
  };
  const test::TwoSpaces spaces(graph, settings, cut);
  const PlanProblem& alike = spaces.alike.problem();
  if (alike.equal_choices().empty() ||
      test::Exhaustive(alike).size() > kMostAssignments) {
    return;
  }
  const PlanSolution of_alike = solve_plan(alike);
  const PlanSolution of_free = solve_plan(spaces.free.problem());
  REQUIRE(of_alike.assignment);
  REQUIRE(of_free.assignment);
  const std::int64_t optimum = of_alike.evaluation.objective;
  const auto judged = least_judged(alike, {}, optimum);
  if (!judged) return;
  ++found.runs;
  found.second_runs += test::has_second_runs(graph) ? 1 : 0;
  CHECK(of_alike.status == PlanStatus::kOptimal);
  CHECK(of_alike.lower_bound == optimum);
  CHECK(optimum == *judged);
  CHECK(of_free.evaluation.objective <= optimum);
  CHECK(alike.equal_choices().are_alike(of_alike.assignment->choices));
  REQUIRE(can_bound_free_layers(alike, of_alike));
  CHECK_FALSE(can_bound_free_layers(spaces.free.problem(), of_free));
  const FreeLayersBound free_bound =
      free_layers_bound(alike, of_alike, Budget());
  if (free_bound.nanoseconds) {
    const std::int64_t cost = of_free.evaluation.objective;
    CHECK(*free_bound.nanoseconds <= cost);
    ++found.free_bounds;
    found.near_free_bounds +=
        *free_bound.nanoseconds >= cost / 100 * 95 ? 1 : 0;
  }
  // The enumeration does not tie the cached layouts of different layers.
  const std::int64_t least = test::ExhaustiveWindows(alike).least();
  CHECK(least <= optimum);
  if (settings.options.overlap == 0) CHECK(least == optimum);
  found.more_expensive += of_free.evaluation.objective < optimum ? 1 : 0;
  check_limited(graph, settings, spaces.restriction, of_alike, found);
}

// 20 graphs every day, 300 with SHARDPROP_FULL=1.
TEST_CASE("the optimum of equal layers is what enumeration finds") {
  std::mt19937 draw(580);
  const int required = testing::counted(20, 300);
  Found found;
  for (int i = 0; found.runs < required && i < 40 * required; ++i) {
    CAPTURE(i);
    const auto graph =
        test::random_running(test::random_layered_graph(draw), draw);
    // Operators run again in a quarter of the graphs.
    const bool needs_them = 4 * found.second_runs < found.runs;
    if (!graph || (needs_them && !test::has_second_runs(*graph))) continue;
    check_optimum(*graph, test::random_settings(draw), draw, found);
  }
  CHECK(found.runs == required);
  MESSAGE(found.more_expensive
          << " of " << found.runs << " cost more than free; the limit binds in "
          << found.limit_binds << ", missed " << found.missed);
  CHECK(found.second_runs > 0);
  CHECK(found.more_expensive > 0);
  // Multipliers of the plan of equal layers bound free plans less exactly.
  CHECK(2 * found.near_free_bounds > found.free_bounds);
  CHECK(found.limit_binds > 0);
  CHECK(found.missed == 0);
}

}  // namespace
}  // namespace shardprop

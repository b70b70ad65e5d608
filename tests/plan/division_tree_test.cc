// Branches of an earlier search, found again in other networks.
#include "plan/network/division_tree.h"

#include "plan/network/warm_start.h"
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
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

Graph example_graph(const std::string& name) {
  return value_of(load_graph("examples/graphs/tiny/" + name + ".json.gz",
                             testing::standard_library()));
}

// Half of the transfers of this topology fit behind the compute, so that a search
// has branches.
Topology memory_bound() {
  Topology topology = default_topology();
  topology.launch_us.value = 0;
  topology.ramp_us.value = 0;
  topology.memory_gbps.value = 20;
  return topology;
}

PlanOptions waiting(double gap) {
  PlanOptions options;
  options.gap = gap;
  options.overlap = 1;
  options.work_limit = 400'000'000;
  options.time_limit_seconds = 1e9;
  return options;
}

Plan plan_of(const Graph& graph, const PlanOptions& options) {
  return value_of(make_plan(graph, value_of(DeviceMesh::parse("8")),
                            memory_bound(), testing::standard_library(),
                            options));
}

PlanProblem problem_of(const Graph& graph, std::vector<Pin> pins = {}) {
  PlanOptions options = waiting(0);
  options.pins = std::move(pins);
  return value_of(PlanProblem::create(graph, value_of(DeviceMesh::parse("8")),
                                      memory_bound(),
                                      testing::standard_library(), options));
}

std::uint32_t draw_below(std::mt19937& draw, std::size_t end) {
  return static_cast<std::uint32_t>(draw() % end);
}

NetworkAssignment sampled(const PlanNetwork& network, std::mt19937& draw) {
  solver::Assignment choices;
  for (std::uint32_t v = 0; v < network.num_variables(); ++v) {
    choices.push_back(
        draw_below(draw, network.network().num_choices(solver::VariableId(v))));
  }
  return network.assignment(std::move(choices));
}

// Returns a tree with random divisions and multipliers, without messages.
DivisionTree sampled_tree(const PlanNetwork& network, int divisions,
                          std::mt19937& draw) {
  NetworkDivisions out;
  const std::size_t windows = network.problem().window_loads().size();
  for (int i = 0; i < divisions; ++i) {
    std::vector<std::size_t> leaves;
    for (std::size_t n = 0; n < out.size(); ++n) {
      if (!out[n].is_divided()) leaves.push_back(n);
    }
    const NetworkAssignment all = sampled(network, draw);
    const std::size_t variable = draw_below(draw, all.size());
    std::vector<std::uint32_t> first;
    for (std::uint32_t c = 0; c < all.num_choices(variable); ++c) {
      if (draw() % 2 == 0) first.push_back(c);
    }
    out.divide(leaves[draw_below(draw, leaves.size())], variable,
               std::move(first), all);
  }
  for (std::size_t n = 0; n < out.size(); ++n) {
    if (out[n].is_divided()) continue;
    for (std::size_t w = 0; w < windows; ++w) {
      out[n].multipliers.push_back(draw_below(draw, 5) / 4.0);
    }
  }
  return out.named(NetworkLabels(network));
}

// Returns how many branches contain the assignment.
int containing(NetworkDivisions& divisions,
               const NetworkAssignment& assignment) {
  int count = 0;
  for (std::size_t n = 0; n < divisions.size(); ++n) {
    if (!divisions[n].is_divided() && divisions[n].left.contains(assignment)) {
      ++count;
    }
  }
  return count;
}

TEST_CASE("the branches of a tree contain each assignment of a network once") {
  std::mt19937 draw(static_cast<std::uint32_t>(testing::property_seed()));
  const Graph llama = example_graph("llama3_train");
  const Graph gpt2 = example_graph("gpt2_train");
  const PlanProblem made_for = problem_of(llama);
  const PlanNetwork network = value_of(PlanNetwork::create(made_for, {}));
  const PlanProblem pinned =
      problem_of(llama, {value_of(Pin::parse("lm_head.weight=R"))});
  const PlanProblem stranger = problem_of(gpt2);
  for (int i = 0; i < 20; ++i) {
    CAPTURE(i);
    const DivisionTree tree = sampled_tree(network, 6, draw);
    for (const PlanProblem* problem : {&made_for, &pinned, &stranger}) {
      const PlanNetwork other = value_of(PlanNetwork::create(*problem, {}));
      NetworkDivisions divisions(tree, NetworkLabels(other),
                                 sampled(other, draw));
      for (int k = 0; k < 20; ++k) {
        CHECK(containing(divisions, sampled(other, draw)) == 1);
      }
      for (std::size_t n = 0; n < divisions.size(); ++n) {
        CHECK(divisions[n].multipliers.empty() == divisions[n].is_divided());
      }
    }
  }
}

TEST_CASE("a tree of other windows does not fit") {
  std::mt19937 draw(1);
  const Graph graph = example_graph("llama3_train");
  const PlanProblem problem = problem_of(graph);
  const PlanNetwork network = value_of(PlanNetwork::create(problem, {}));
  DivisionTree tree = sampled_tree(network, 3, draw);
  const std::size_t windows = problem.window_loads().size();
  CHECK(has_windows(tree, windows));
  CHECK(!has_windows(tree, windows + 1));
  tree.nodes.back().multipliers.pop_back();
  CHECK(!has_windows(tree, windows));
  CHECK(!has_windows(DivisionTree(), windows));
}

TEST_CASE("no tree and no messages make a bound too high") {
  std::mt19937 draw(static_cast<std::uint32_t>(testing::property_seed()));
  const Graph graph = example_graph("llama3_train");
  PlanOptions options = waiting(0);
  options.keeps_warm_start = true;
  const Plan best = plan_of(graph, options);
  REQUIRE(best.status == PlanStatus::kOptimal);
  REQUIRE(best.warm_start.data != nullptr);
  REQUIRE(best.warm_start.data->branches != nullptr);
  CHECK(best.warm_start.data->branches->nodes.size() > 1);
  const PlanProblem problem = problem_of(graph);
  const PlanNetwork network = value_of(PlanNetwork::create(problem, {}));
  for (int i = 0; i < 4; ++i) {
    CAPTURE(i);
    auto learned = std::make_shared<WarmStart>(*best.warm_start.data);
    auto tree =
        std::make_shared<DivisionTree>(sampled_tree(network, 3 * i, draw));
    // Messages of the real search with random errors of up to a millisecond.
    auto messages = std::make_shared<NamedMessages>(*learned->messages);
    for (NamedMessages::Message& message : messages->messages) {
      for (float& cost : message.costs) {
        cost += static_cast<float>(draw_below(draw, 1'000'000));
      }
    }
    for (DivisionTree::Node& node : tree->nodes) {
      if (!node.is_divided() && draw() % 2 == 0) node.messages = messages;
    }
    learned->branches = tree;
    if (learned->free_layers) learned->free_layers = messages;
    Plan start = best;
    start.warm_start.data = learned;
    PlanOptions again = waiting(i % 2 == 0 ? 0 : 0.001);
    again.start_from = std::make_shared<const Plan>(start);
    const Plan found = plan_of(graph, again);
    REQUIRE(found.has_plan());
    CHECK(*found.objective_nanoseconds >= *best.objective_nanoseconds);
    CHECK(found.lower_bound_nanoseconds <= *best.objective_nanoseconds);
  }
}

TEST_CASE("the branches of a plan bound the plans with another pin") {
  const Graph graph = example_graph("llama3_train");
  PlanOptions options = waiting(0.0005);
  options.keeps_warm_start = true;
  Plan before = plan_of(graph, options);
  REQUIRE(before.warm_start.data != nullptr);
  REQUIRE(before.warm_start.data->branches != nullptr);
  for (const char* pin :
       {"lm_head.weight=S(0)", "lm_head.weight=R",
        "model.layers.1.mlp.down_proj.weight=R", "model.norm.weight=R"}) {
    CAPTURE(pin);
    PlanOptions fresh = waiting(0);
    fresh.pins = {value_of(Pin::parse(pin))};
    const Plan best = plan_of(graph, fresh);
    PlanOptions pinned = options;
    pinned.pins = fresh.pins;
    pinned.start_from = std::make_shared<const Plan>(before);
    const Plan found = plan_of(graph, pinned);
    REQUIRE(best.has_plan());
    REQUIRE(found.has_plan());
    CHECK(found.lower_bound_nanoseconds <= *best.objective_nanoseconds);
    CHECK(best.lower_bound_nanoseconds <= *found.objective_nanoseconds);
    CHECK(*found.gap() <= 0.0005);
    // Plans with free layers may cost less, but not less than their bound.
    PlanOptions freely = fresh;
    freely.layers = Layers::kFree;
    const Plan free = plan_of(graph, freely);
    REQUIRE(free.has_plan());
    if (found.free_lower_bound_nanoseconds) {
      CHECK(*found.free_lower_bound_nanoseconds <= *free.objective_nanoseconds);
    }
    // The next search starts from this one.
    REQUIRE(found.warm_start.data != nullptr);
    CHECK(found.warm_start.data->branches != nullptr);
    before = found;
  }
}

}  // namespace
}  // namespace shardprop

// These tests check the choices of a parameter that an optimizer trains.
#include "plan/problem/choices/trained_parameter.h"

#include "plan/problem/layout_relations.h"
#include "plan/problem/plan_problem.h"
#include "plan/small_graphs.h"
#include "support/result_checks.h"
#include "support/standard_library.h"

#include <shardprop/mesh/update_cost.h>

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <utility>

namespace shardprop {
namespace {

using testing::value_of;

PlanProblem training_problem(const Graph& graph, const char* mesh,
                             PlanOptions options) {
  return value_of(PlanProblem::create(graph, value_of(DeviceMesh::parse(mesh)),
                                      default_topology(),
                                      testing::standard_library(), options));
}

// Returns the variable of the parameter, which is input 2 of linear_training().
const PlanVariable& parameter_of(const PlanProblem& problem) {
  for (const PlanVariable& variable : problem.variables()) {
    if (variable.kind == PlanVariable::Kind::kInput &&
        problem.graph().value(variable.makes[0]).display_name() == "net.w") {
      return variable;
    }
  }
  FAIL("no parameter");
  return problem.variables().front();
}

// ChosenLayouts has the layouts of the parameter, its gradient and its state.
struct ChosenLayouts {
  const Layout& own;
  const Layout& gradient;
  const Layout& state;
};

ChosenLayouts layouts_of(const PlanProblem& problem, const ChoiceSet& set,
                         std::size_t choice) {
  // The gradient is the only tie of linear_training().
  REQUIRE(set.num_uses == 1);
  return {problem.layouts()[set.layout(choice, 1)],
          problem.layouts()[set.layout(choice, 0)],
          problem.layouts()[set.state_layouts[choice]]};
}

TEST_CASE("the state of an optimizer has its parameter's layout or slices it") {
  const Graph graph = test::linear_training(testing::standard_library());
  for (const char* mesh : {"2", "2,2"}) {
    PlanOptions options;
    options.optimizer = Optimizer::kAdamW;
    const PlanProblem problem = training_problem(graph, mesh, options);
    const ChoiceSet& set = *parameter_of(problem).choices;
    std::set<std::pair<Layout, Layout>> found;
    for (std::size_t c = 0; c < set.size(); ++c) {
      const auto [own, gradient, state] = layouts_of(problem, set, c);
      CAPTURE(to_string(own));
      CAPTURE(to_string(state));
      CHECK(gradient == state);
      CHECK(gathers(state, own));
      CHECK(found.emplace(own, state).second);
    }
    // Every layout with the same state, and the replicated one with any state.
    for (std::size_t c = 0; c < set.size(); ++c) {
      const Layout own = layouts_of(problem, set, c).own;
      CHECK(found.contains({own, own}));
      CHECK(found.contains({Layout::replicated(own.mesh_ndim()), own}));
    }
    CHECK(set.reduced_late.empty());
  }
}

TEST_CASE("a choice costs the update of its shards and the gather after it") {
  const Graph graph = test::linear_training(testing::standard_library());
  for (const Optimizer optimizer : {Optimizer::kSgd, Optimizer::kAdamW}) {
    PlanOptions options;
    options.optimizer = optimizer;
    options.overlap = 0;
    const PlanProblem problem = training_problem(graph, "4", options);
    const PlanVariable& w = parameter_of(problem);
    const ChoiceSet& set = *w.choices;
    const UpdateCost& update =
        optimizer == Optimizer::kAdamW ? kAdamWUpdate : kSgdUpdate;
    for (std::size_t c = 0; c < set.size(); ++c) {
      const auto [own, gradient, state] = layouts_of(problem, set, c);
      CAPTURE(to_string(own));
      CAPTURE(to_string(state));
      const double elements = 1024.0 * 1024 / (state[0].is_shard() ? 4 : 1);
      const std::int64_t step =
          update_nanoseconds(default_topology(), update.flops * elements,
                             update.passes * 4 * elements);
      const std::int64_t gather = problem.move_nanoseconds(
          w.makes[0], set.state_layouts[c], set.layout(c, 1));
      CHECK(set.costs[c] == step + gather);
      CHECK((gather > 0) == (own != state));
    }
  }
}

TEST_CASE("micro-batches double the choices: reduced each time, or once") {
  const Graph graph = test::linear_training(testing::standard_library());
  PlanOptions options;
  options.optimizer = Optimizer::kAdamW;
  const PlanProblem one = training_problem(graph, "2", options);
  options.accumulate = 4;
  const PlanProblem four = training_problem(graph, "2", options);
  const ChoiceSet& single = *parameter_of(one).choices;
  const ChoiceSet& repeated = *parameter_of(four).choices;
  REQUIRE(repeated.size() == 2 * single.size());
  REQUIRE(repeated.reduced_late.size() == repeated.size());
  for (std::size_t c = 0; c < repeated.size(); ++c) {
    CHECK(repeated.reduced_late[c] == (c % 2 == 1));
    const auto here = layouts_of(four, repeated, c);
    const auto there = layouts_of(one, single, c / 2);
    CHECK(here.own == there.own);
    CHECK(here.state == there.state);
    // The update and the gather happen once a step of four micro-batches.
    CHECK(repeated.costs[c] >= single.costs[c / 2] / 4 - 2);
    CHECK(repeated.costs[c] <= single.costs[c / 2] / 4 + 2);
  }
}

}  // namespace
}  // namespace shardprop

#include "solver/random_problem.h"
#include "support/property.h"

#include <shardprop/solver/solve.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>

namespace shardprop::solver {
namespace {

constexpr std::int64_t kF = kForbidden;
using Costs2 = std::array<std::int64_t, 2>;
using Costs4 = std::array<std::int64_t, 4>;

SolveOptions patient() {
  SolveOptions options;
  options.time_limit_seconds = 1e12;
  return options;
}

TEST_CASE("a conflict of pins and a tie names exactly these") {
  ProblemBuilder builder;
  const TableId equal = builder.add_table(2, 2, Costs4{0, kF, kF, 0});
  for (int v = 0; v < 6; ++v) builder.add_variable(Costs2{0, 1});
  for (std::size_t v = 0; v + 1 < 6; ++v) {
    builder.add_edge(VariableId(v), VariableId(v + 1), equal);
  }
  builder.pin(VariableId(0), 1);
  builder.pin(VariableId(2), 1);
  builder.pin(VariableId(4), 0);
  const Solution solution = solve(*std::move(builder).build(), patient());
  REQUIRE(solution.status == Status::kInfeasible);
  REQUIRE(solution.conflict.has_value());
  CHECK(solution.conflict->irreducible);
  CHECK(solution.conflict->memory.empty());
  CHECK(solution.conflict->variables.empty());
  REQUIRE(solution.conflict->pins.size() == 2);
  CHECK(solution.conflict->pins[1] == Pin{VariableId(4), 0});
  // From pin 2 or pin 0 to pin 4, without gaps.
  CHECK(solution.conflict->edges.size() ==
        (solution.conflict->pins[0].variable == VariableId(2) ? 2U : 4U));
}

TEST_CASE("a memory step that cannot hold says by how many bytes") {
  ProblemBuilder builder;
  for (int v = 0; v < 4; ++v) {
    const VariableId id = builder.add_variable(Costs2{0, 1});
    builder.add_usage(id, {v, v + 2}, Costs2{30, 20});
  }
  builder.pin(VariableId(1), 0);
  builder.set_limit(45);
  const Solution solution = solve(*std::move(builder).build(), patient());
  REQUIRE(solution.status == Status::kInfeasible);
  CHECK(solution.conflict->irreducible);
  CHECK(solution.conflict->pins == std::vector<Pin>{{VariableId(1), 0}});
  REQUIRE(solution.conflict->memory.size() == 1);
  const auto& step = solution.conflict->memory[0];
  CHECK((step.time == 1 || step.time == 2));
  CHECK(to_string(step.bytes_short) == "5");  // 30 + 20 beyond 45
}

// Returns the problem with only these parts of a conflict.
Problem only(const Problem& problem, const Conflict& conflict) {
  ProblemBuilder builder;
  for (std::size_t v = 0; v < problem.num_variables(); ++v) {
    const bool keep =
        std::find(conflict.variables.begin(), conflict.variables.end(),
                  VariableId(v)) != conflict.variables.end();
    std::vector<std::int64_t> costs(problem.num_choices(VariableId(v)), 0);
    for (std::size_t c = 0; keep && c < costs.size(); ++c) {
      if (is_forbidden(problem.costs(VariableId(v))[c])) costs[c] = kF;
    }
    builder.add_variable(costs);
    for (std::size_t u = 0; u < problem.num_usages(VariableId(v)); ++u) {
      const Usage usage = problem.usage(VariableId(v), u);
      for (const Conflict::MemoryStep& step : conflict.memory) {
        if (usage.when.lo <= step.time && step.time < usage.when.hi) {
          builder.add_usage(VariableId(v), {step.time, step.time + 1},
                            usage.bytes);
        }
      }
    }
  }
  for (const EdgeId e : conflict.edges) {
    const Edge& edge = problem.edge(e);
    const Table table = problem.table(edge.table);
    std::vector<std::int64_t> costs(table.costs.size(), 0);
    for (std::size_t i = 0; i < costs.size(); ++i) {
      if (is_forbidden(table.costs[i])) costs[i] = kF;
    }
    builder.add_edge(edge.a, edge.b,
                     builder.add_table(table.rows, table.columns, costs));
  }
  for (const Pin& pin : conflict.pins) builder.pin(pin.variable, pin.choice);
  if (problem.limit().has_value()) builder.set_limit(*problem.limit());
  return *std::move(builder).build();
}

template <class T>
void each_left_out(const Problem& problem, Conflict conflict,
                   std::vector<T> Conflict::* parts) {
  const std::vector<T> all = conflict.*parts;
  for (std::size_t i = 0; i < all.size(); ++i) {
    conflict.*parts = all;
    (conflict.*parts)
        .erase((conflict.*parts).begin() + static_cast<std::ptrdiff_t>(i));
    CHECK(testing::brute_force(only(problem, conflict)).has_value());
  }
}

TEST_CASE("a search for a conflict asks nobody about its parts") {
  Rng rng(7);
  int seen = 0;
  int asked_of_parts = 0;
  const int cases = shardprop::testing::counted(80, 200);
  for (int i = 0; i < cases; ++i) {
    const Problem problem = testing::random_problem(
        rng, {.most_variables = 24, .most_assignments = 1 << 29});
    SolveOptions options = patient();
    // Without these passes the search handles the remaining network, round by
    // round.
    for (const Pass pass :
         {Pass::kDominance, Pass::kLowDegree, Pass::kElimination}) {
      options.passes.disable(pass);
    }
    options.work_limit = 1'000'000;
    options.go_on = [&](const Assignment& assignment, double) {
      const auto judged = evaluate(problem, assignment);
      if (!judged.has_value() || !judged->feasible()) ++asked_of_parts;
      return true;
    };
    if (solve(problem, options).status == Status::kInfeasible) ++seen;
  }
  CHECK(seen > cases / 20);
  CHECK(asked_of_parts == 0);
}

TEST_CASE("conflicts of random problems are infeasible and minimal") {
  Rng rng(5);
  int seen = 0;
  for (int i = 0; i < 600; ++i) {
    const Problem problem =
        testing::random_problem(rng, {.most_assignments = 300});
    const Solution solution = solve(problem, patient());
    if (solution.status != Status::kInfeasible) continue;
    ++seen;
    CAPTURE(i);
    REQUIRE(solution.conflict.has_value());
    const Conflict& conflict = *solution.conflict;
    CHECK(conflict.irreducible);
    CHECK(!testing::brute_force(only(problem, conflict)).has_value());
    for (const Conflict::MemoryStep& step : conflict.memory) {
      if (conflict.memory.size() == 1) CHECK(step.bytes_short > 0);
    }
    each_left_out(problem, conflict, &Conflict::pins);
    each_left_out(problem, conflict, &Conflict::variables);
    each_left_out(problem, conflict, &Conflict::edges);
    each_left_out(problem, conflict, &Conflict::memory);
  }
  CHECK(seen > 50);
}

}  // namespace
}  // namespace shardprop::solver

// The assignments of a network that cost less than a plan, against all of its
// assignments.
#include "plan/network/cheaper_assignments.h"
#include "support/property.h"
#include "support/result_checks.h"

#include <shardprop/solver/problem.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

using testing::value_of;

solver::Problem random_network(std::mt19937& draw) {
  const auto below = [&](std::size_t n) { return draw() % n; };
  solver::ProblemBuilder builder;
  const std::size_t variables = 1 + below(6);
  std::vector<std::size_t> choices;
  const auto cost = [&] {
    return below(8) == 0 ? solver::kForbidden
                         : static_cast<std::int64_t>(below(20));
  };
  const auto costs = [&](std::size_t n) {
    std::vector<std::int64_t> out(n);
    for (std::int64_t& one : out) one = cost();
    return out;
  };
  for (std::size_t v = 0; v < variables; ++v) {
    choices.push_back(1 + below(4));
    builder.add_variable(costs(choices.back()));
  }
  for (std::size_t e = below(2 * variables); e-- > 0;) {
    const std::size_t a = below(variables);
    const std::size_t b = below(variables);
    builder.add_edge(solver::VariableId(a), solver::VariableId(b),
                     builder.add_table(choices[a], choices[b],
                                       costs(choices[a] * choices[b])));
  }
  for (std::size_t u = below(2 * variables); u-- > 0;) {
    const std::size_t v = below(variables);
    const auto from = static_cast<std::int64_t>(below(4));
    std::vector<std::int64_t> bytes(choices[v]);
    for (std::int64_t& one : bytes) one = static_cast<std::int64_t>(below(10));
    builder.add_usage(solver::VariableId(v),
                      {from, from + static_cast<std::int64_t>(below(3))},
                      bytes);
  }
  if (below(4) != 0) builder.set_limit(static_cast<std::int64_t>(below(30)));
  return value_of(std::move(builder).build());
}

// All assignments of the network that are within its limit, with their costs.
std::vector<std::pair<std::int64_t, solver::Assignment>> all_of(
    const solver::Problem& network) {
  std::vector<std::pair<std::int64_t, solver::Assignment>> out;
  solver::Assignment choices(network.num_variables(), 0);
  while (true) {
    const auto judged = solver::evaluate(network, choices);
    if (judged && judged->feasible()) {
      out.emplace_back(static_cast<std::int64_t>(judged->cost), choices);
    }
    std::size_t v = 0;
    for (; v < choices.size(); ++v) {
      if (++choices[v] < network.num_choices(solver::VariableId(v))) break;
      choices[v] = 0;
    }
    if (v == choices.size()) return out;
  }
}

TEST_CASE("every assignment below a cost is visited once, and no other") {
  std::mt19937 draw(7);
  std::size_t visited = 0;
  for (int i = 0; i < testing::scaled(500); ++i) {
    CAPTURE(i);
    const solver::Problem network = random_network(draw);
    const auto below = static_cast<std::int64_t>(draw() % 80);
    std::set<solver::Assignment> expected;
    for (const auto& [cost, choices] : all_of(network)) {
      if (cost < below) expected.insert(choices);
    }
    std::set<solver::Assignment> found;
    Budget budget;
    CHECK(CheaperAssignments(network).run(
        {.below = [&] { return below; },
         .visit =
             [&](const solver::Assignment& choices) {
               CHECK(found.insert(choices).second);
             }},
        budget, 1));
    CHECK(found == expected);
    CHECK(budget.work_spent() >= found.size());
    visited += found.size();
  }
  CHECK(visited > 500);
}

TEST_CASE("assignments end when the cost falls, or the work is spent") {
  std::mt19937 draw(8);
  for (int i = 0; i < testing::scaled(200); ++i) {
    const solver::Problem network = random_network(draw);
    const auto all = all_of(network);
    if (all.empty()) continue;
    std::int64_t least = solver::kForbidden;
    for (const auto& [cost, choices] : all) least = std::min(least, cost);
    // Each visited assignment costs less than the one before.
    std::int64_t best = solver::kForbidden;
    Budget budget;
    CHECK(CheaperAssignments(network).run(
        {.below = [&] { return best; },
         .visit =
             [&](const solver::Assignment& choices) {
               const auto judged = solver::evaluate(network, choices);
               const auto cost = static_cast<std::int64_t>(judged->cost);
               CHECK(cost < best);
               best = cost;
             }},
        budget, 1));
    CHECK(best == least);

    Budget none({.work = 0});
    std::size_t visits = 0;
    CHECK_FALSE(CheaperAssignments(network).run(
        {.below = [] { return solver::kForbidden; },
         .visit = [&](const solver::Assignment&) { ++visits; }},
        none, 1));
    CHECK(visits == 0);
  }
}

}  // namespace
}  // namespace shardprop

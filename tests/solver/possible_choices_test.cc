// possible_choices() keeps every choice of the assignments below its target, and
// its bound stays below the optimum. Enumeration is the oracle.
#include "solver/random_problem.h"

#include <shardprop/solver/possible_choices.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardprop::solver {
namespace {

// Calls `visit` with each assignment and its evaluation.
template <class Visit>
void for_each_assignment(const Problem& problem, const Visit& visit) {
  Assignment choices(problem.num_variables(), 0);
  for (;;) {
    visit(choices, evaluate(problem, choices).value());
    std::size_t v = 0;
    while (v < choices.size() &&
           ++choices[v] == problem.num_choices(VariableId(v))) {
      choices[v++] = 0;
    }
    if (v == choices.size()) return;
  }
}

bool contains(const PossibleChoices& left, const Assignment& choices) {
  if (left.choices.empty()) return false;
  for (std::size_t v = 0; v < choices.size(); ++v) {
    const std::vector<std::uint32_t>& of = left.choices[v];
    if (std::find(of.begin(), of.end(), choices[v]) == of.end()) return false;
  }
  return true;
}

TEST_CASE("possible choices: all assignments below the target are left") {
  Rng rng(17);
  int pruned = 0;
  int empty = 0;
  int exact = 0;
  for (int i = 0; i < 300; ++i) {
    CAPTURE(i);
    const Problem problem = testing::random_problem(
        rng, {.most_variables = 6, .most_assignments = 1000});
    const std::optional<Int128> least = testing::brute_force(problem);
    const Int128 target = least.value_or(10) + rng.below(6) - 2;
    Messages messages;
    SolveOptions options;
    options.messages = &messages;
    // The second run starts from the messages of the first one.
    for (int run = 0; run < 2; ++run) {
      const PossibleChoices left = possible_choices(problem, target, options);
      if (least) CHECK(left.lower_bound <= *least);
      CHECK(left.lower_bound <= target);
      exact += least && left.lower_bound == *least ? 1 : 0;
      empty += left.choices.empty() ? 1 : 0;
      CHECK(left.decoded.size() ==
            (left.choices.empty() ? 0 : problem.num_variables()));
      for_each_assignment(
          problem, [&](const Assignment& choices, const Evaluation& found) {
            if (!found.feasible()) return;
            if (contains(left, choices)) return;
            ++pruned;
            CHECK(found.cost >= target);
          });
    }
  }
  MESSAGE(pruned << " assignments pruned, " << empty << " empty, " << exact
                 << " bounds exact");
  CHECK(pruned > 1000);
  CHECK(empty > 50);
  CHECK(exact > 50);
}

TEST_CASE("possible choices: a problem without work keeps a valid bound") {
  Rng rng(3);
  const Problem problem = testing::random_problem(rng, {});
  SolveOptions options;
  options.work_limit = 0;
  const PossibleChoices left = possible_choices(problem, 1000, options);
  const std::optional<Int128> least = testing::brute_force(problem);
  REQUIRE(least);
  CHECK(left.lower_bound <= *least);
}

}  // namespace
}  // namespace shardprop::solver

// One plan problem of a small graph in two spaces: equal layers choose alike, or
// all layers are free.
#pragma once

#include "plan/problem/equal_choices.h"
#include "plan/problem/plan_problem.h"
#include "plan/search/parts/restricted_problem.h"
#include "plan/training_graphs.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace shardprop::test {

inline bool has_second_runs(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const Node& node) { return node.runs_again(); });
}

// Returns a restriction of at most three random choices for each variable.
inline Restriction few_choices(const PlanProblem& problem, std::mt19937& draw) {
  Restriction out = no_restriction(problem);
  for (std::size_t v = 0; v < out.left.size(); ++v) {
    const std::size_t first =
        problem.equal_choices().first(PlanVariableId(v)).index();
    if (first != v) {
      out.left[v] = out.left[first];
      continue;
    }
    std::vector<std::uint32_t> all(problem.variables()[v].choices->size());
    std::iota(all.begin(), all.end(), 0U);
    std::shuffle(all.begin(), all.end(), draw);
    // Second runs have variables of their own.
    const std::size_t least = has_second_runs(problem.graph()) ? 1 : 2;
    all.resize(std::min<std::size_t>(all.size(), least + draw() % 2));
    std::sort(all.begin(), all.end());
    out.left[v] = std::move(all);
  }
  return out;
}

// TwoSpaces is one problem in which layers choose alike, and the same problem
// in which they are free. Both have the choices of `restriction`.
struct TwoSpaces {
  // `restrict(problem)` returns the restriction of the problem with equal layers.
  template <class Restrict>
  TwoSpaces(const Graph& graph, const TrainingSettings& settings,
            const Restrict& restrict)
      : all_alike(problem_with(graph, settings)),
        all_free(free_problem(graph, settings)),
        restriction(restrict(all_alike)),
        alike(all_alike, restriction),
        free(all_free, restriction) {}

  static PlanProblem free_problem(const Graph& graph,
                                  TrainingSettings settings) {
    settings.options.layers = Layers::kFree;
    return problem_with(graph, settings);
  }

  PlanProblem all_alike;
  PlanProblem all_free;
  Restriction restriction;
  RestrictedProblem alike;
  RestrictedProblem free;
};

}  // namespace shardprop::test

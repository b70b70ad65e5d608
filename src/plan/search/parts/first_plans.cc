#include "plan/search/parts/first_plans.h"

#include "base/index.h"
#include "plan/problem/constraints/recipe_layouts.h"
#include "plan/problem/problem_data.h"

#include <algorithm>
#include <utility>

namespace shardprop {
namespace {

// Returns, for each joined mesh dim, the pair of the mesh dim larger than 1
// before it and itself.
std::vector<std::pair<int, int>> joined_pairs(const DeviceMesh& mesh,
                                              std::uint32_t joined_dims) {
  std::vector<std::pair<int, int>> out;
  std::optional<int> before;
  for (int m = 0; m < mesh.ndim(); ++m) {
    if (mesh.size(m) == 1) continue;
    if (before && (joined_dims >> m & 1U) != 0) out.emplace_back(*before, m);
    before = m;
  }
  return out;
}

using DimPairs = std::vector<std::pair<int, int>>;

bool gives_uniform(const Assignment& assignment, const DimPairs& pairs) {
  return std::all_of(pairs.begin(), pairs.end(), [&](const auto& pair) {
    return assignment[index(pair.first)] == assignment[index(pair.second)];
  });
}

bool is_uniform(const Layout& layout, const DimPairs& pairs) {
  return std::all_of(pairs.begin(), pairs.end(), [&](const auto& pair) {
    const auto [before, dim] = pair;
    return layout[before] == layout[dim] &&
           (!layout[dim].is_shard() ||
            layout.shard_order()[index(dim)] ==
                layout.shard_order()[index(before)] + 1);
  });
}

// Returns the masks of all ways to join neighbours among the mesh dims larger
// than 1 to one dim, or to two.
std::vector<std::uint32_t> ways_to_join(const DeviceMesh& mesh) {
  std::vector<int> dims;
  for (int m = 0; m < mesh.ndim(); ++m) {
    if (mesh.size(m) > 1) dims.push_back(m);
  }
  std::vector<std::uint32_t> out;
  if (dims.size() < 2) return out;
  std::uint32_t all = 0;
  for (std::size_t i = 1; i < dims.size(); ++i) all |= 1U << dims[i];
  out.push_back(all);
  if (dims.size() == 2) return out;
  // The second run begins at this dim.
  for (std::size_t i = dims.size() - 1; i > 0; --i) {
    out.push_back(all & ~(1U << dims[i]));
  }
  return out;
}

template <class Keeps>
std::vector<std::uint32_t> choices_where(const ChoiceSet& set,
                                         const Keeps& keeps) {
  std::vector<std::uint32_t> kept;
  for (std::uint32_t c = 0; c < set.size(); ++c) {
    if (keeps(c)) kept.push_back(c);
  }
  return kept;
}

}  // namespace

std::string to_string(const FirstSpace& space) {
  return space.recipe ? "the recipe " + to_string(*space.recipe)
                      : std::string("plans that join mesh dims");
}

std::vector<FirstSpace> first_spaces(const PlanProblem& problem) {
  std::vector<FirstSpace> out;
  if (problem.options().recipe || problem.options().forced) return out;
  if (problem.data().set_up.given != nullptr) return out;
  const PlanSpace& space = problem.data().set_up.space;
  for (const Recipe& recipe : problem.known_recipes()) {
    if (is_in_space(recipe, problem.mesh(), space)) {
      out.push_back({recipe});
    }
  }
  // Tensor parallelism is cheapest on most meshes, and the recipes name it last. A
  // plan that is known early spares the others part of their search.
  std::reverse(out.begin(), out.end());
  const int most_runs = space.most_runs.value_or(problem.mesh().ndim());
  for (const std::uint32_t joined : ways_to_join(problem.mesh())) {
    const bool is_part = (space.joined_dims & ~joined) == 0;
    const bool is_smaller = joined != space.joined_dims && most_runs > 1;
    if (is_part && is_smaller) {
      out.push_back({std::nullopt, joined});
    }
  }
  return out;
}

Restriction restriction_to(const PlanProblem& problem,
                           const FirstSpace& space) {
  return space.recipe ? following(problem, *space.recipe)
                      : with_joined_dims(problem, space.joined_dims);
}

Restriction with_joined_dims(const PlanProblem& problem,
                             std::uint32_t joined_dims) {
  const DimPairs pairs = joined_pairs(problem.mesh(), joined_dims);
  Restriction out = no_restriction(problem);
  for (std::size_t v = 0; v < out.left.size(); ++v) {
    const PlanVariable& variable = problem.variables()[v];
    const ChoiceSet& set = *variable.choices;
    const auto lays_out_uniformly = [&](LayoutId id) {
      return is_uniform(problem.layouts()[id], pairs);
    };
    if (variable.kind == PlanVariable::Kind::kOperator) {
      out.left[v] = choices_where(set, [&](std::uint32_t c) {
        return gives_uniform(set.op.strategies[c].assignment, pairs);
      });
    } else {
      out.left[v] = choices_where(set, [&](std::uint32_t c) {
        return lays_out_uniformly(set.layout(c, set.layouts.size() - 1)) &&
               (set.state_layouts.empty() ||
                lays_out_uniformly(set.state_layouts[c]));
      });
    }
  }
  return out;
}

std::optional<Restriction> reduced_each_time(const PlanProblem& problem) {
  Restriction out = no_restriction(problem);
  bool restricts = false;
  for (std::size_t v = 0; v < out.left.size(); ++v) {
    const ChoiceSet& set = *problem.variables()[v].choices;
    if (set.reduced_late.empty()) continue;
    out.left[v] = choices_where(
        set, [&](std::uint32_t c) { return !set.reduced_late[c]; });
    restricts =
        restricts || (!out.left[v].empty() && out.left[v].size() < set.size());
  }
  if (!restricts) return std::nullopt;
  return out;
}

Restriction choices_of_plans(const PlanProblem& problem,
                             std::span<const PlanAssignment> plans) {
  Restriction out = no_restriction(problem);
  for (std::size_t v = 0; v < out.left.size(); ++v) {
    std::vector<std::uint32_t>& left = out.left[v];
    for (const PlanAssignment& plan : plans) left.push_back(plan.choices[v]);
    std::sort(left.begin(), left.end());
    left.erase(std::unique(left.begin(), left.end()), left.end());
  }
  return out;
}

}  // namespace shardprop

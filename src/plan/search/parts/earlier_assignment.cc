#include "plan/search/parts/earlier_assignment.h"

#include "plan/problem/equal_choices.h"
#include "plan/saved/read/saved_assignment.h"
#include "plan/saved/read/saved_choices.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

bool have_same_sizes(const DeviceMesh& a, const DeviceMesh& b) {
  return std::equal(
      a.dims().begin(), a.dims().end(), b.dims().begin(), b.dims().end(),
      [](const MeshDim& x, const MeshDim& y) { return x.size == y.size; });
}

}  // namespace

std::optional<PlanAssignment> earlier_assignment(
    const PlanProblem& problem, const Plan& earlier,
    const EarlierPlanMatch& match) {
  if (!match.is_allowed() || !have_same_sizes(problem.mesh(), earlier.mesh)) {
    return std::nullopt;
  }
  std::vector<std::uint32_t> chosen;
  for (std::size_t v = 0; v < problem.variables().size(); ++v) {
    const std::vector<std::int64_t>& costs =
        problem.variables()[v].choices->costs;
    const std::vector<std::uint32_t>& left = match.kept.left[v];
    chosen.push_back(*std::min_element(
        left.begin(), left.end(),
        [&](std::uint32_t a, std::uint32_t b) { return costs[a] < costs[b]; }));
  }
  if (!problem.equal_choices().are_alike(chosen)) return std::nullopt;
  const Result<SavedChoices> choices = choices_of(earlier, problem.graph());
  if (!choices) return std::nullopt;
  Result<PlanAssignment> out =
      saved_assignment(problem, earlier, *choices, std::move(chosen));
  if (!out || !evaluate(problem, *out).broken.empty()) return std::nullopt;
  return *std::move(out);
}

}  // namespace shardprop

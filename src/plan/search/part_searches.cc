#include "plan/search/part_searches.h"

#include "base/guard.h"

#include <algorithm>
#include <utility>

namespace shardprop {

std::optional<std::int64_t> least_of(std::optional<std::int64_t> a,
                                     std::optional<std::int64_t> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

SearchScope PartSearches::scope(
    std::optional<std::int64_t> cost_to_beat) const {
  return {.break_ties = false,
          .first_plans = false,
          .explains = false,
          .cost_to_beat = cost_to_beat,
          .known_cost = least_of(whole_.known_cost,
                                 search_.problem().options().known_cost)};
}

PlanSolution PartSearches::solve(const std::string& name,
                                 const std::function<Restriction()>& choices,
                                 const Budget& budget, const SearchScope& scope,
                                 std::optional<double> gap) {
  return solve(
      name,
      [&] {
        return std::optional<RestrictedProblem>(
            std::in_place, search_.problem(), choices(), gap);
      },
      budget, scope);
}

PlanSolution PartSearches::solve(
    const std::string& name,
    const std::function<std::optional<RestrictedProblem>()>& make,
    const Budget& budget, const SearchScope& scope) {
  PlanSolution found;
  auto solved = guarded([&]() -> Result<void> {
    const std::optional<RestrictedProblem> part = make();
    if (!part) return {};
    found = solve_part_(part->problem(), budget, scope);
    if (!scope.cost_to_beat || found.lower_bound < *scope.cost_to_beat) {
      note_limit(found);
    }
    if (found.assignment) {
      found.assignment = part->widened(*std::move(found.assignment));
      plans_.push_back(*found.assignment);
    }
    search_.begin_with(found);
    return {};
  });
  if (!solved) {
    found.failure = std::move(solved).error();
    // It may be the assignment of the part, which is not one of the problem.
    found.assignment.reset();
  }
  add_left_out(name, found, search_.incumbent().solution().left_out);
  return found;
}

// Notes whether a plan of this part that ignores the limit fits.
void PartSearches::note_limit(const PlanSolution& found) {
  const bool binds = !found.assignment || found.bound_without_limit;
  binds_ = binds && binds_.value_or(true);
}

}  // namespace shardprop

// PartSearches solves parts of the space of a search, one after another. The search
// begins with their best plans, and may mix their choices later.
//
//   PartSearches parts(search, scope, solve_plan);
//   parts.solve("the recipe fsdp=dp", [&] { return following(problem, fsdp); },
//               budget, parts.scope());
#pragma once

#include "base/budget.h"
#include "plan/evaluate/plan_solution.h"
#include "plan/problem/constraints/restriction.h"
#include "plan/search/network_search.h"
#include "plan/search/parts/restricted_problem.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shardprop {

class PartSearches {
 public:
  using Solve = PlanSolution (*)(const PlanProblem&, const Budget&,
                                 const SearchScope&);

  // `search` and `whole`, its scope, must outlive the object. `solve_part` searches
  // a part, as solve_plan() does.
  PartSearches(NetworkSearch& search, const SearchScope& whole,
               Solve solve_part)
      : search_(search), whole_(whole), solve_part_(solve_part) {}

  // Returns the scope of the search of a part.
  SearchScope scope(std::optional<std::int64_t> cost_to_beat = {}) const;

  // Solves the part with these choices to within `gap`; null means that of the
  // options. The search goes on without a part that the machine refuses memory for.
  PlanSolution solve(const std::string& name,
                     const std::function<Restriction()>& choices,
                     const Budget& budget, const SearchScope& scope,
                     std::optional<double> gap = {});
  // Does the same for the problem that `make()` returns. A part that is null does
  // not exist.
  PlanSolution solve(
      const std::string& name,
      const std::function<std::optional<RestrictedProblem>()>& make,
      const Budget& budget, const SearchScope& scope);

  // The plans of the parts, as plans of the whole space.
  std::span<const PlanAssignment> plans() const { return plans_; }
  void add(const PlanAssignment& plan) { plans_.push_back(plan); }
  // Forgets all plans.
  void clear() { plans_.clear(); }
  // Returns whether the memory limit excludes the cheapest plan of every part.
  // False before the first part.
  bool does_limit_bind() const { return binds_.value_or(false); }

 private:
  void note_limit(const PlanSolution& found);

  NetworkSearch& search_;
  const SearchScope& whole_;
  Solve solve_part_;
  std::vector<PlanAssignment> plans_;
  std::optional<bool> binds_;
};

// Returns the lower cost; null if neither is known.
std::optional<std::int64_t> least_of(std::optional<std::int64_t> a,
                                     std::optional<std::int64_t> b);

}  // namespace shardprop

#include "plan/search/solve_plan.h"

#include "base/guard.h"
#include "plan/problem/equal_choices.h"
#include "plan/problem/plan_budget.h"
#include "plan/problem/problem_data.h"
#include "plan/search/memory_search.h"
#include "plan/search/network_search.h"
#include "plan/search/overlap_search.h"
#include "plan/search/part_searches.h"
#include "plan/search/parts/earlier_assignment.h"
#include "plan/search/parts/earlier_plan_match.h"
#include "plan/search/parts/first_plans.h"
#include "plan/search/tie_breaking.h"
#include "plan/tuning.h"

#include <shardprop/solver/solve.h>

#include <algorithm>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

class PlanSolver {
 public:
  PlanSolver(const PlanProblem& problem, const Budget& budget,
             const SearchScope& scope)
      : problem_(problem),
        options_(problem.options()),
        scope_(scope),
        search_(problem, budget, scope),
        best_(search_.incumbent()),
        parts_(search_, scope_, solve_plan) {}

  PlanSolution run() {
    try {
      const Plan* plan = options_.start_from.get();
      if (plan != nullptr && plan->has_plan() && scope_.first_plans) {
        search_.run(PlanProcedure::kEarlierPlan, [&] { start_from(*plan); });
      }
      const bool is_near = best_.is_done() && !options_.compare;
      if (!is_near) find_first_plans();
      if (!is_near) search_from(scope_.overlap_multipliers);
      const bool is_earlier = earlier_ && best_.take_given(*earlier_);
      // A plan within the gap comes at once, without a choice among plans of
      // equal cost.
      if (!is_earlier && !best_.costs_at_least(options_.known_cost) &&
          (!is_near || options_.gap == 0))
        prefer();
      if (scope_.break_ties && uniform_) {
        note_uniform(problem_, *uniform_, best_.solution());
      }
    } catch (...) {
      best_.solution().failure = refusal(std::current_exception());
      if (!best_.solution().failure) throw;
      if (earlier_) best_.take_given(*earlier_);
    }
    best_.solution().overlap_multipliers = network_.overlap_multipliers;
    return std::move(search_).finish();
  }

 private:
  // ---- plans of parts of the space

  // Begins with the plan of the options: solves parts of the space around it,
  // then the full space.
  void start_from(const Plan& plan) {
    const EarlierPlanMatch match = match_earlier_plan(problem_, plan);
    best_.solution().start = match.start;
    if (!match.start.is_usable()) return;
    earlier_ = earlier_assignment(problem_, plan, match);
    if (search_.out_of_limits()) return;
    Budget budget = search_.budget().share(tuning::kIncumbentBudgetShare);
    find_near(match, budget);
    if (!best_.found()) return;
    best_.solution().start->led_to_plan = true;
    SearchScope scope = scope_;
    scope.first_plans = scope.explains = false;
    PlanSolver full(problem_, budget.rest(), scope);
    full.search_.begin_with(best_.solution().assignment, 0);
    full.search_.start_from(plan.warm_start.data);
    full.raise_bound_at(match.overlap_multipliers);
    if (!full.best_.is_done()) full.search_from(match.overlap_multipliers);
    network_ = std::move(full.network_);
    uniform_ = full.uniform_;
    const PlanSolution best = std::move(full.search_).finish();
    add_left_out("plans near the plan to start from", best,
                 best_.solution().left_out);
    search_.begin_with(best);
    best_.raise_bound(best.lower_bound);
    best_.solution().bound_without_limit = best.bound_without_limit;
    best_.solution().is_limit_tested = best.is_limit_tested;
  }

  // Solves three parts of the space around the plan. The first is the plan itself,
  // with all choices of the new variables. In the second, the variables near them
  // have all choices too. In the third, a layer may follow another one.
  void find_near(const EarlierPlanMatch& match, Budget& budget) {
    const auto solve_near = [&](Restriction part, bool is_allowed) {
      if (search_.out_of_limits()) return;
      // An allowed plan is found exactly, unless a network that counts memory misses it.
      SearchScope scope = parts_.scope();
      scope.break_ties = is_allowed && scope_.break_ties;
      scope.overlap_multipliers = match.overlap_multipliers;
      const PlanSolution found = parts_.solve(
          "the plan to start from", [&] { return std::move(part); },
          budget.within({.work = tuning::kNearPlanWork}), scope,
          is_allowed ? 0 : tuning::kNearPlanGapShare * options_.gap);
      budget.charge(found.work);
    };
    const bool is_allowed = match.is_allowed();
    solve_near(is_allowed ? match.kept : freed_around(problem_, match, 1),
               is_allowed);
    if (std::find(match.is_new.begin(), match.is_new.end(), true) !=
        match.is_new.end()) {
      solve_near(freed_near(problem_, match), false);
    }
    if (best_.found()) {
      solve_near(
          choices_of_alike(problem_, match, *best_.solution().assignment),
          false);
    }
    // Mixes need the best of these plans only.
    parts_.clear();
    if (best_.found()) parts_.add(*best_.solution().assignment);
  }

  // Raises the bound by earlier branches, then at these overlap multipliers.
  void raise_bound_at(const std::vector<std::int64_t>& multipliers) {
    if (multipliers.empty()) return;
    network_.overlap_multipliers = multipliers;
    if (search_.branches() != nullptr) {
      search_.run(PlanProcedure::kOverlapBranching,
                  [&] { OverlapBranching(search_).bound_again(network_); });
      if (best_.is_done()) return;
    }
    search_.solve(
        network_,
        {.bounds_only = true,
         .budget = search_.budget().within({.work = tuning::kWarmBoundWork})});
  }

  // Searches the space from these overlap multipliers.
  void search_from(const std::vector<std::int64_t>& multipliers) {
    if (multipliers.empty()) return search();
    network_.overlap_multipliers = multipliers;
    Attempt freely;
    if (options_.memory_limit) freely.gives_up_at = tuning::kGiveUpShare;
    if (solve(network_, freely) && best_.found_here()) {
      if (!best_.is_done()) search_overlap();
      return;
    }
    network_.overlap_multipliers.clear();
    if (!best_.is_done()) search();
  }

  void search_overlap() {
    OverlapSearch overlapped(search_, network_, scope_.break_ties);
    network_.overlap_multipliers = overlapped.run(std::move(last_));
    uniform_ = overlapped.uniform();
  }

  void find_first_plans() {
    const bool is_off = !scope_.first_plans || options_.work_limit == 0U;
    if (is_off || search_.budget().is_cut_off()) return;
    // Every part gets a plan, even if the work of smaller spaces or of the first
    // parts exceeds the limit, so that no answer costs more than that of a recipe.
    const std::vector<FirstSpace> spaces = first_spaces(problem_);
    std::size_t parts = spaces.size() + 1;  // the last one mixes the others
    const auto next_part = [&] {
      return search_.budget()
          .until(tuning::kFirstPlansBudgetShare)
          .one_of(parts--)
          .at_least(tuning::kLeastFirstPlanWork);
    };
    if (options_.layers == Layers::kFree && !options_.forced &&
        problem_.data().set_up.given == nullptr) {
      search_.run(PlanProcedure::kEqualLayers, [&] { find_equal_layers(); });
    }
    for (const FirstSpace& space : spaces) {
      if (search_.budget().is_cut_off()) return;
      search_.run(space.recipe ? PlanProcedure::kRecipePlans
                               : PlanProcedure::kJoinedDims,
                  [&] { find_plan_of(space, next_part()); });
    }
    mix(next_part());
  }

  // Solves the problem with equal layers, which is many times smaller.
  void find_equal_layers() {
    const auto make = [&] {
      std::optional<RestrictedProblem> part(std::in_place, problem_,
                                            RestrictedProblem::EqualLayers{});
      if (!part->problem().equal_choices().have_layers()) part.reset();
      return part;
    };
    parts_.solve("plans of equal layers", make,
                 search_.budget()
                     .share(tuning::kEqualLayersBudgetShare)
                     .at_least(tuning::kLeastFirstPlanWork),
                 parts_.scope());
  }

  void find_plan_of(const FirstSpace& space, const Budget& budget) {
    // A recipe is an answer of its own in a comparison, and serves the search
    // otherwise, as other parts always do.
    SearchScope scope =
        parts_.scope(space.recipe ? std::nullopt : best_.cost());
    if (!options_.compare) {
      scope.known_cost = least_of(scope.known_cost, best_.cost());
    }
    const PlanSolution found = parts_.solve(
        to_string(space), [&] { return restriction_to(problem_, space); },
        budget, scope);
    if (!space.recipe) return;
    PlanRecipe recipe{to_string(*space.recipe), found.status, std::nullopt,
                      found.evaluation.peak_bytes};
    if (found.assignment) {
      recipe.objective_nanoseconds = found.evaluation.objective;
    }
    best_.solution().recipes.push_back(std::move(recipe));
  }

  // Solves the part of the space with the choices of the plans found so far.
  void mix(const Budget& budget) {
    if (!scope_.first_plans || parts_.plans().size() < 2 ||
        search_.budget().is_cut_off()) {
      return;
    }
    search_.run(PlanProcedure::kMixedPlans, [&] {
      parts_.solve(
          "plans that mix the choices of others",
          [&] { return choices_of_plans(problem_, parts_.plans()); }, budget,
          parts_.scope(best_.cost()));
    });
  }

  // ---- the whole space

  void search() {
    // Most plans fit, so the first network does not count memory.
    const bool limited = options_.memory_limit.has_value();
    // A limit that binds in every part most likely binds in the whole space.
    double share = scope_.share_if_limit_binds;
    const Budget whole = search_.budget();
    if (limited && parts_.does_limit_bind() && share < 1) {
      search_.narrow(std::exchange(share, 1));
    }
    // Overlapped transfers are free in it. Other multipliers need a part of the
    // budget if its plans wait for them.
    Attempt freely{.leaves_waiting_at = tuning::kFreeNetworkBudgetShare};
    if (limited) freely.gives_up_at = tuning::kGiveUpShare;
    bool is_solved = false;
    search_.run(PlanProcedure::kFreeNetwork,
                [&] { is_solved = solve({}, freely); });
    best_.solution().is_limit_tested = is_solved;
    const auto& beat = scope_.cost_to_beat;
    if (!is_solved || (beat && best_.solution().lower_bound >= *beat)) return;
    if (best_.fits(last_.evaluation)) search_.widen_to(whole);
    // A plan that fits may have been met on the way to one that does not.
    if (limited && !best_.fits(last_.evaluation) && !best_.is_done()) {
      search_.free_network();
      best_.solution().bound_without_limit = best_.solution().lower_bound;
      if (share < 1) search_.narrow(share);
      search_.run(PlanProcedure::kReducedEachTime, [&] { reduce_each_time(); });
      last_ = MemorySearch(search_).run(std::move(last_));
      network_.memory_limit = options_.memory_limit;
    }
    if (best_.found_here() && !best_.is_done()) search_overlap();
    if (limited && scope_.first_plans && best_.found() && !best_.is_done() &&
        !search_.out_of_limits()) {
      search_.free_network();
      MemorySearch(search_).judge_rest(network_.overlap_multipliers);
    }
    if (!parts_.plans().empty() && best_.found_here() && !best_.is_done() &&
        best_.solution().lower_bound <
            options_.known_cost.value_or(kMostNanoseconds)) {
      search_.free_network();
      parts_.add(*best_.solution().assignment);
      mix(search_.budget()
              .share(tuning::kMixedPlansBudgetShare)
              .at_least(tuning::kLeastMixWork));
    }
  }

  // Solves a network, and keeps its solution. Returns whether there is one.
  bool solve(const NetworkOptions& network, const Attempt& attempt) {
    SolvedNetwork solved = search_.solve(network, attempt);
    if (!solved) return false;
    last_ = std::move(solved);
    return true;
  }

  void reduce_each_time() {
    if (search_.out_of_limits()) return;
    const auto restriction = reduced_each_time(problem_);
    if (!restriction) return;
    parts_.solve(
        "plans that reduce gradients in each micro-batch",
        [&] { return *restriction; },
        search_.budget().share(tuning::kReducedEachTimeBudgetShare),
        parts_.scope(least_of(best_.cost(), parts_.scope().known_cost)));
  }

  // Breaks ties among plans of this cost (tie_breaking.h).
  void prefer() {
    const Budget& budget = search_.budget();
    if (!scope_.break_ties || !best_.found() || budget.is_stopped()) return;
    std::optional<PlanNetwork> network = search_.take_network(
        {.overlap_multipliers = network_.overlap_multipliers});
    const auto spent = budget.work_spent();
    auto most =
        tuning::kTieBreakingWork + spent / tuning::kTieBreakingWorkDivisor;
    // Ties are not worth more than the search if the plan is not proven.
    if (options_.gap > 0 && !best_.is_proven()) most = std::min(most, spent);
    search_.run(PlanProcedure::kTieBreaking, [&] {
      const solver::SolveOptions how =
          solver_options(problem_, budget.within({.work = most}));
      break_ties(problem_, network_.overlap_multipliers, std::move(network),
                 how, best_.solution());
    });
  }

  const PlanProblem& problem_;
  const PlanOptions& options_;
  SearchScope scope_;
  NetworkSearch search_;
  PlanIncumbent& best_;  // of the search
  PartSearches parts_;
  SolvedNetwork last_;                     // the last one with a solution
  std::optional<std::int64_t> uniform_;    // found by OverlapSearch
  NetworkOptions network_;                 // of the best plan
  std::optional<PlanAssignment> earlier_;  // the plan to start from
};

}  // namespace

PlanSolution solve_plan(const PlanProblem& problem, const Budget& budget,
                        const SearchScope& scope) {
  return PlanSolver(problem, budget, scope).run();
}

PlanSolution solve_plan(const PlanProblem& problem) {
  return solve_plan(problem, budget_of(problem.options()));
}

}  // namespace shardprop

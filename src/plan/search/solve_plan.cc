#include "plan/search/solve_plan.h"

#include "base/guard.h"
#include "base/spread.h"
#include "plan/problem/plan_budget.h"
#include "plan/search/cheaper_assignments.h"
#include "plan/search/first_plans.h"
#include "plan/search/incumbent_match.h"
#include "plan/search/network_search.h"
#include "plan/search/overlap_search.h"
#include "plan/search/tie_breaking.h"
#include "plan/tuning.h"

#include <shardprop/solver/solve.h>

#include <algorithm>
#include <exception>
#include <iterator>
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
        best_(search_.incumbent()) {}

  PlanSolution run() {
    try {
      const Plan* plan = options_.incumbent.get();
      bool is_of_start = false;
      if (plan != nullptr && plan->has_plan() && scope_.first_plans) {
        search_.run(PlanProcedure::kEarlierPlan,
                    [&] { is_of_start = start_from(*plan); });
      }
      const bool is_near = best_.is_done() && !options_.compare;
      if (!is_near) find_first_plans();
      if (!is_near) search();
      // Ties in the plan of an earlier problem are broken already.
      if (!is_near || !is_of_start || best_.is_proven()) prefer();
      price_uniform();
    } catch (...) {
      best_.solution().failure = refusal(std::current_exception());
      if (!best_.solution().failure) throw;
    }
    best_.solution().overlap_multipliers = network_.overlap_multipliers;
    return std::move(search_).finish();
  }

 private:
  // ---- plans of parts of the space

  // Solves a part of the space, whose best plan the search then begins with.
  // `restriction()` is the part. The search goes on without a part that the
  // machine refuses memory for.
  template <class MakeRestriction>
  PlanSolution solve_part(const std::string& name,
                          const MakeRestriction& restriction,
                          const Budget& budget, bool breaks_ties = false) {
    PlanSolution found;
    auto solved = guarded([&]() -> Result<void> {
      const RestrictedProblem part(problem_, restriction());
      found = solve_plan(
          part.problem(), budget,
          {.break_ties = breaks_ties, .first_plans = false, .explains = false});
      if (found.assignment) {
        found.assignment = part.widened(*std::move(found.assignment));
        parts_.push_back(*found.assignment);
      }
      search_.begin_with(found);
      return {};
    });
    if (!solved) found.failure = std::move(solved).error();
    if (found.failure) {
      best_.solution().left_out.push_back({name, *found.failure});
    }
    return found;
  }

  // Begins with the plan of the options: solves the part of the space around it,
  // then the full space. Returns whether the best plan is that of the part.
  bool start_from(const Plan& plan) {
    if (search_.out_of_limits()) return false;
    IncumbentMatch match = match_incumbent(problem_, plan);
    best_.solution().start = match.start;
    if (!match.start.is_usable()) return false;
    Budget budget = search_.budget().share(tuning::kIncumbentBudgetShare);
    const PlanSolution found = solve_part(
        "the plan to start from", [&] { return std::move(match.kept); }, budget,
        scope_.break_ties);
    if (!found.assignment) return false;
    best_.solution().start->led_to_plan = true;
    budget.charge(found.work);
    SearchScope scope = scope_;
    scope.first_plans = scope.explains = false;
    PlanSolver near(problem_, budget.rest(), scope);
    near.search_.begin_with(found.assignment, 0);
    near.bound_at(match.overlap_multipliers);
    if (!near.best_.is_done()) near.search();
    network_ = std::move(near.network_);
    uniform_ = near.uniform_;
    const PlanSolution best = std::move(near.search_).finish();
    search_.begin_with(best);
    best_.raise_bound(best.lower_bound);
    return best.evaluation.objective == found.evaluation.objective;
  }

  // Looks for a bound at the multipliers of an earlier problem.
  void bound_at(const std::vector<std::int64_t>& multipliers) {
    if (multipliers.empty()) return;
    network_.overlap_multipliers = multipliers;
    search_.solve(network_);
    if (!best_.is_done()) network_.overlap_multipliers.clear();
  }

  void find_first_plans() {
    if (!scope_.first_plans || search_.out_of_limits()) return;
    const std::vector<FirstSpace> spaces = first_spaces(problem_);
    // The last part is for the mix of the others.
    std::size_t parts = spaces.size() + 1;
    const auto next_part = [&] {
      return search_.budget()
          .until(tuning::kFirstPlansBudgetShare)
          .one_of(parts--);
    };
    for (const FirstSpace& space : spaces) {
      if (search_.out_of_limits()) return;
      search_.run(space.recipe ? PlanProcedure::kRecipePlans
                               : PlanProcedure::kJoinedDims,
                  [&] { find_plan_of(space, next_part()); });
    }
    mix(next_part());
  }

  void find_plan_of(const FirstSpace& space, const Budget& budget) {
    const PlanSolution found = solve_part(
        to_string(space), [&] { return restriction_to(problem_, space); },
        budget);
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
    if (!scope_.first_plans || parts_.size() < 2 || search_.out_of_limits()) {
      return;
    }
    search_.run(PlanProcedure::kMixedPlans, [&] {
      solve_part(
          "plans that mix the choices of others",
          [&] { return choices_of_plans(problem_, parts_); }, budget);
    });
  }

  // ---- the whole space

  void search() {
    // Most plans fit, so the first network does not count memory.
    const bool limited = options_.memory_limit.has_value();
    Attempt freely;
    if (limited) freely.gives_up_at = tuning::kGiveUpShare;
    bool is_solved = false;
    search_.run(PlanProcedure::kFreeNetwork,
                [&] { is_solved = solve({}, freely); });
    if (!is_solved) return;
    if (limited && !best_.found_here()) {
      search_.free_network();
      search_.run(PlanProcedure::kReducedEachTime, [&] { reduce_each_time(); });
      search_.run(PlanProcedure::kSmallPlan, [&] { make_small(); });
      if (!best_.found_here()) fit();
      network_.memory_limit = options_.memory_limit;
    }
    if (best_.found_here() && !best_.is_done()) {
      OverlapSearch overlapped(search_, network_, scope_.break_ties);
      network_.overlap_multipliers = overlapped.run(std::move(last_));
      uniform_ = overlapped.uniform();
    }
    search_.free_network();
    if (!parts_.empty() && best_.found_here() && !best_.is_done()) {
      parts_.push_back(*best_.solution().assignment);
      mix(search_.budget().share(tuning::kMixedPlansBudgetShare));
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
    solve_part(
        "plans that reduce gradients in each micro-batch",
        [&] { return *restriction; },
        search_.budget().share(tuning::kReducedEachTimeBudgetShare));
  }

  // If the cheapest plan nearly fits, another plan of equal cost may fit.
  void make_small() {
    const PlanEvaluation& free = last_.evaluation;
    if (search_.out_of_limits() ||
        static_cast<double>(free.peak_bytes) >
            tuning::kNearlyFittingMemoryFactor *
                static_cast<double>(*options_.memory_limit)) {
      return;
    }
    PlanSolution like;
    like.assignment = last_.plan;
    like.evaluation = free;
    const solver::SolveOptions how = solver_options(
        problem_, search_.budget()
                      .share(tuning::kSmallPlanTimeShare, 1)
                      .within({.work = tuning::kTieBreakingWork}));
    PlanSolution small = small_solution(problem_, how, std::move(like));
    if (small.assignment) best_.take(*small.assignment, small.evaluation);
    add_runs(best_.solution().procedures, small.procedures);
    std::move(small.left_out.begin(), small.left_out.end(),
              std::back_inserter(best_.solution().left_out));
  }

  void fit() {
    NetworkOptions network;
    network.memory_limit = options_.memory_limit;
    bool is_solved = true;
    search_.run(PlanProcedure::kMemoryNetwork, [&] {
      is_solved =
          solve(network, {.gives_up_at = tuning::kFirstNetworkGiveUpShare});
    });
    if (!is_solved || best_.fits(last_.evaluation)) return;
    if (none_is_cheaper()) return;
    search_.run(PlanProcedure::kReserveRounds,
                [&] { reserve_rounds(network); });
    if (search_.out_of_limits() || none_is_cheaper()) return;
    if (!best_.found_here()) {
      search_.run(PlanProcedure::kScratchBounds, [&] { spread(); });
    }
    // The rounds were short. The best network of them is solved again, with the
    // remaining time.
    if (best_.found_here() && !best_.is_done()) {
      search_.run(PlanProcedure::kBestReserve,
                  [&] { solve(best_look_, {.bounds = false}); });
    }
  }

  void reserve_rounds(NetworkOptions& network) {
    const auto fits = [&] {
      return !nothing_there_ && best_.fits(last_.evaluation);
    };
    for (int round = 1; round <= tuning::kMostMemoryRounds && !fits();
         ++round) {
      reserve(network);
      fits_in(network);
      if (search_.out_of_limits()) return;
    }
  }

  // Judges the plans of all assignments that cost less than the best plan that
  // fits. The rounds miss plans whose redistributions take less than the
  // reserves. Returns whether none is left.
  bool none_is_cheaper() {
    bool is_complete = false;
    search_.run(PlanProcedure::kCheaperPlans,
                [&] { is_complete = judge_cheaper(); });
    return is_complete;
  }

  bool judge_cheaper() {
    if (problem_.variables().size() > tuning::kMostVariablesOfCheaperPlans) {
      return false;
    }
    Result<PlanNetwork> built = PlanNetwork::create(
        problem_, {.memory_limit = options_.memory_limit});
    if (!built) {
      best_.solution().failure = std::move(built).error();
      return true;
    }
    const solver::Problem& network = built->network();
    std::uint64_t entries = 0;
    for (const solver::Edge& edge : network.edges()) {
      entries += network.table(edge.table).costs.size();
    }
    if (entries > tuning::kCheaperPlansWork) return false;
    Budget budget = search_.budget()
                        .share(tuning::kCheaperPlansBudgetShare)
                        .within({.work = tuning::kCheaperPlansWork});
    const bool is_complete = CheaperAssignments(network).run(
        {.below =
             [&] {
               return best_.found() ? best_.solution().evaluation.objective
                                    : solver::kForbidden;
             },
         .visit =
             [&](const solver::Assignment& choices) {
               best_.take(built->decode(built->assignment(choices)));
             }},
        budget, tuning::kJudgementWork * network.num_variables());
    search_.begin_with({}, budget.work_spent());
    return is_complete;
  }

  // Solves a network for a short time, in search of a plan that fits.
  bool solve_in_round(const NetworkOptions& network) {
    nothing_there_ = !solve(
        network,
        {.bounds = false,
         .gives_up_at = tuning::kGiveUpShare,
         .budget = search_.budget().share(tuning::kMemoryRoundBudgetShare)});
    return !nothing_there_;
  }

  // Raises the reserve of each slot by 1.25 x the last plan's excess there. If
  // the last network had no solution, halves all reserves instead.
  void reserve(NetworkOptions& network) const {
    if (nothing_there_) {
      for (std::int64_t& bytes : network.reserved) bytes /= 2;
      return;
    }
    const std::vector<std::int64_t> bytes = bytes_by_slot(problem_, last_.plan);
    network.reserved.resize(bytes.size(), 0);
    for (std::size_t t = 0; t < bytes.size(); ++t) {
      const std::int64_t lacking = bytes[t] - *options_.memory_limit;
      if (lacking > 0)
        network.reserved[t] +=
            lacking + lacking / tuning::kReserveMarginDivisor + 1;
    }
  }

  // Fallback if the reserves by slot do not converge. It bounds the bytes of
  // each redistribution that the network does not count to a share of the
  // limit. The shares are a van der Corput sequence. All slots also reserve as
  // many bytes, none, or a part of them.
  void spread() {
    if (last_.plan.choices.empty()) return;
    const std::int64_t limit = *options_.memory_limit;
    for (std::uint32_t i = 1; i < tuning::kSpreadElements; ++i) {
      NetworkOptions network;
      const auto most = static_cast<std::int64_t>(
          tuning::kMostUncountedMemoryShare * spread_out(i, 2) *
          static_cast<double>(limit));
      network.most_uncounted = most;
      const auto between = static_cast<std::int64_t>(spread_out(i, 3) *
                                                     static_cast<double>(most));
      for (const std::int64_t aside : {most, std::int64_t{0}, between}) {
        network.memory_limit = limit - aside;
        network.reserved.clear();
        look_around(network);
        if (search_.out_of_limits() || has_looked_enough()) return;
      }
    }
  }
  bool has_looked_enough() const {
    return best_.found_here() &&
           search_.budget().share_spent() > tuning::kSpreadBudgetShare;
  }

  // Solves a network in a few rounds, and raises the reserves after each.
  void look_around(NetworkOptions& network) {
    for (int round = 0; round < tuning::kSpreadRounds; ++round) {
      if (fits_in(network) || nothing_there_) return;
      if (search_.out_of_limits()) return;
      reserve(network);
    }
  }

  // Returns whether a short solve of the network leads to a plan that fits.
  bool fits_in(const NetworkOptions& network) {
    const std::optional<std::int64_t> before = best_.found_here();
    if (!solve_in_round(network) || !best_.fits(last_.evaluation)) return false;
    if (!before || *best_.found_here() < *before) {
      best_look_ = network;
    }
    return true;
  }

  // Breaks ties among plans of this cost (tie_breaking.h).
  void prefer() {
    const Budget& budget = search_.budget();
    if (!scope_.break_ties || !best_.found() || budget.is_stopped()) return;
    search_.forget();
    const auto spent = budget.work_spent();
    auto most = tuning::kTieBreakingWork + spent / tuning::kTieBreakingWorkDivisor;
    // Ties are not worth more than the search if the plan is not proven.
    if (options_.gap > 0 && !best_.is_proven()) most = std::min(most, spent);
    search_.run(PlanProcedure::kTieBreaking, [&] {
      const solver::SolveOptions how = solver_options(
          problem_, budget.within({.work = most}));
      break_ties(problem_, network_.overlap_multipliers, how, best_.solution());
    });
  }

  // Prices the best plan found on the way in which equal layers have the same
  // layouts, unless tie-breaking found a cheaper one.
  void price_uniform() {
    PlanSolution& best = best_.solution();
    if (!scope_.break_ties || !best_.found() || !uniform_ ||
        is_uniform(problem_, *best.assignment)) {
      return;
    }
    const std::int64_t more = *uniform_ - best.evaluation.objective;
    best.uniform_costs_more =
        std::min(best.uniform_costs_more.value_or(more), more);
  }

  const PlanProblem& problem_;
  const PlanOptions& options_;
  SearchScope scope_;
  NetworkSearch search_;
  PlanIncumbent& best_;                  // of the search
  SolvedNetwork last_;                   // the last one with a solution
  NetworkOptions best_look_;             // of the best plan that fits
  bool nothing_there_ = false;           // the last round had no solution
  std::optional<std::int64_t> uniform_;  // found by OverlapSearch
  NetworkOptions network_;               // of the best plan
  std::vector<PlanAssignment> parts_;    // plans of parts of the space
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

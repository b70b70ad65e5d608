#include "plan/search/memory_search.h"

#include "base/spread.h"
#include "plan/network/cheaper_assignments.h"
#include "plan/search/overlap_multipliers.h"
#include "plan/search/tie_breaking.h"
#include "plan/tuning.h"

#include <shardprop/solver/solve.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace shardprop {

SolvedNetwork MemorySearch::run(SolvedNetwork last) {
  last_ = std::move(last);
  bool is_small = false;
  search_.run(PlanProcedure::kSmallPlan, [&] { is_small = make_small(); });
  if (!is_small) fit();
  return std::move(last_);
}

// Solves a network, and keeps its solution. Returns whether there is one.
bool MemorySearch::solve(const NetworkOptions& network,
                         const Attempt& attempt) {
  SolvedNetwork solved = search_.solve(network, attempt);
  if (!solved) return false;
  last_ = std::move(solved);
  return true;
}

// If the cheapest plan nearly fits, another plan of equal cost may fit. Returns
// whether there is one. The first network is solved again for it, with other costs.
// If the rest of the work is less than that takes, it is left to the network that
// counts memory.
bool MemorySearch::make_small() {
  const PlanEvaluation& free = last_.evaluation;
  const std::optional<std::uint64_t> left = search_.budget().work_left();
  if (search_.out_of_limits() || (left && *left < search_.first_work()) ||
      static_cast<double>(free.peak_bytes) >
          tuning::kNearlyFittingMemoryFactor * static_cast<double>(limit_)) {
    return false;
  }
  PlanSolution like;
  like.assignment = last_.plan;
  like.evaluation = free;
  const solver::SolveOptions how = solver_options(
      search_.problem(), search_.budget()
                             .share(tuning::kSmallPlanTimeShare, 1)
                             .within({.work = tuning::kTieBreakingWork}));
  PlanSolution small = small_solution(search_.problem(), how, std::move(like));
  search_.begin_with({}, small.work);
  if (small.assignment) best_.take(*small.assignment, small.evaluation);
  add_runs(best_.solution().procedures, small.procedures);
  std::move(small.left_out.begin(), small.left_out.end(),
            std::back_inserter(best_.solution().left_out));
  return small.assignment.has_value();
}

void MemorySearch::fit() {
  NetworkOptions network;
  network.memory_limit = limit_;
  bool is_solved = true;
  search_.run(PlanProcedure::kMemoryNetwork, [&] {
    is_solved =
        solve(network, {.gives_up_at = tuning::kFirstNetworkGiveUpShare});
  });
  if (!is_solved || best_.fits(last_.evaluation)) return;
  if (none_is_cheaper()) return;
  search_.run(PlanProcedure::kReserveRounds, [&] { reserve_rounds(network); });
  if (search_.out_of_limits()) return;
  if (best_.found() && none_is_cheaper()) return;
  if (!best_look_) {
    search_.run(PlanProcedure::kScratchBounds, [&] { spread(); });
    if (search_.out_of_limits()) return;
    if (best_.found() && none_is_cheaper()) return;
  }
  // The rounds were short. The best network of them is solved again, with the
  // remaining time.
  if (best_look_ && !best_.is_done()) {
    search_.run(PlanProcedure::kBestReserve,
                [&] { solve(*best_look_, {.bounds = false}); });
  }
}

void MemorySearch::reserve_rounds(NetworkOptions& network) {
  const auto fits = [&] {
    return !nothing_there_ && best_.fits(last_.evaluation);
  };
  for (int round = 1; round <= tuning::kMostMemoryRounds && !fits(); ++round) {
    reserve(network);
    fits_in(network);
    if (search_.out_of_limits()) return;
  }
}

// Judges the plans of all assignments that cost less than the best plan that
// fits. The rounds miss plans whose redistributions take less than the
// reserves. Returns whether none is left.
bool MemorySearch::none_is_cheaper() {
  // Any overlap multipliers give a bound of each plan. The multipliers of
  // a plan that is nearly the best leave the fewest assignments to visit.
  const PlanEvaluation& near =
      best_.found() ? best_.solution().evaluation : last_.evaluation;
  bool is_complete = false;
  search_.run(PlanProcedure::kCheaperPlans, [&] {
    is_complete = judge_cheaper(OverlapMultipliers::extreme(near.windows),
                                near.objective);
  });
  return is_complete;
}

void MemorySearch::judge_rest(
    const std::vector<std::int64_t>& overlap_multipliers) {
  search_.run(PlanProcedure::kCheaperPlans, [&] {
    judge_cheaper(overlap_multipliers, best_.solution().lower_bound);
  });
}

// Plans that cost little more than `expected` come before others.
bool MemorySearch::judge_cheaper(
    const std::vector<std::int64_t>& overlap_multipliers,
    std::int64_t expected) {
  const PlanProblem& problem = search_.problem();
  if (problem.variables().size() > tuning::kMostVariablesOfCheaperPlans) {
    return false;
  }
  const NetworkOptions options{.memory_limit = limit_,
                               .overlap_multipliers = overlap_multipliers};
  Result<PlanNetwork> built = PlanNetwork::create(problem, options);
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
  CheaperAssignments assignments(network);
  const auto visit_below = [&](std::int64_t most) {
    return assignments.run(
        {.below =
             [&] {
               return best_.found()
                          ? std::min(most,
                                     best_.solution().evaluation.objective)
                          : most;
             },
         .visit =
             [&](const solver::Assignment& choices) {
               best_.take(built->decode(built->assignment(choices)));
             }},
        budget, tuning::kJudgementWork * network.num_variables());
  };
  for (const double factor : tuning::kFirstCheaperPlans) {
    const auto most =
        static_cast<std::int64_t>(factor * static_cast<double>(expected));
    if (best_.found() && best_.solution().evaluation.objective <= most) break;
    visit_below(most);
  }
  const bool is_complete = visit_below(solver::kForbidden);
  search_.begin_with({}, budget.work_spent());
  return is_complete;
}

// Solves a network for a short time, in search of a plan that fits.
bool MemorySearch::solve_in_round(const NetworkOptions& network) {
  nothing_there_ = !solve(
      network,
      {.bounds = false,
       .gives_up_at = tuning::kGiveUpShare,
       .budget = search_.budget().share(tuning::kMemoryRoundBudgetShare)});
  return !nothing_there_;
}

// Raises the reserve of each slot by 1.25 x the last plan's excess there. If
// the last network had no solution, halves all reserves instead.
void MemorySearch::reserve(NetworkOptions& network) const {
  if (nothing_there_) {
    for (std::int64_t& bytes : network.reserved) bytes /= 2;
    return;
  }
  const std::vector<std::int64_t> bytes =
      bytes_by_slot(search_.problem(), last_.plan);
  network.reserved.resize(bytes.size(), 0);
  for (std::size_t t = 0; t < bytes.size(); ++t) {
    const std::int64_t lacking = bytes[t] - limit_;
    if (lacking <= 0) continue;
    network.reserved[t] +=
        lacking + lacking / tuning::kReserveMarginDivisor + 1;
  }
}

// Fallback if the reserves by slot do not converge. It bounds the bytes of
// each redistribution that the network does not count to a share of the
// limit. The shares are a van der Corput sequence. All slots also reserve as
// many bytes, none, or a part of them.
void MemorySearch::spread() {
  if (last_.plan.choices.empty()) return;
  for (std::uint32_t i = 1; i < tuning::kSpreadElements; ++i) {
    NetworkOptions network;
    const auto most = static_cast<std::int64_t>(
        tuning::kMostUncountedMemoryShare * spread_out(i, 2) *
        static_cast<double>(limit_));
    network.most_uncounted = most;
    const auto between =
        static_cast<std::int64_t>(spread_out(i, 3) * static_cast<double>(most));
    for (const std::int64_t aside : {most, std::int64_t{0}, between}) {
      network.memory_limit = limit_ - aside;
      network.reserved.clear();
      look_around(network);
      if (search_.out_of_limits() || has_looked_enough()) return;
    }
  }
}

bool MemorySearch::has_looked_enough() const {
  return best_.found_here() &&
         search_.budget().share_spent() > tuning::kSpreadBudgetShare;
}

// Solves a network in a few rounds, and raises the reserves after each. To reduce a
// network is most of the time of a round, so that its entries count as work.
void MemorySearch::look_around(NetworkOptions& network) {
  for (int round = 0; round < tuning::kSpreadRounds; ++round) {
    const bool fits = fits_in(network);
    search_.begin_with({}, search_.network_entries());
    if (fits || nothing_there_) return;
    if (search_.out_of_limits()) return;
    reserve(network);
  }
}

// Returns whether a short solve of the network leads to a plan that fits.
bool MemorySearch::fits_in(const NetworkOptions& network) {
  const std::optional<std::int64_t> before = best_.found_here();
  if (!solve_in_round(network) || !best_.fits(last_.evaluation)) return false;
  if (!before || *best_.found_here() < *before) {
    best_look_ = network;
  }
  return true;
}

}  // namespace shardprop

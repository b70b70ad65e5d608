#include "plan/solve_plan.h"

#include "base/guard.h"
#include "plan/first_plans.h"
#include "plan/hidden_time.h"
#include "plan/network_search.h"
#include "plan/ties.h"

#include <shardprop/solver/solve.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

// The network counts memory from below. Where a solution of it exceeds the
// limit after all, what it lacks is set aside and the rest is solved again.
constexpr int kMostMemoryRounds = 5;
constexpr std::uint32_t kMostSpread = 256;
constexpr int kRoundsOfShare = 3;
constexpr double kMostUncounted = 0.5;  // of the limit
// Share of the limits for the plans of small parts of the space, which divide the
// rest of that share equally.
constexpr double kShareOfFirstPlans = 0.4;
// Share of the remaining limits in which all gradients are reduced in each
// micro-batch, where accumulating them unreduced does not fit.
constexpr double kShareOfEachTime = 0.5;
// Share of the remaining limits for plans that mix the choices of others.
constexpr double kShareOfMixed = 0.25;
// Cheaper plans are looked for until this share of the time is spent.
constexpr double kShareOfSpread = 0.5;
// Of the time left: when the first of these gives way to the next, and what
// each of those may take.
constexpr double kFirstGivesUpAt = 0.2;
constexpr double kShareOfRound = 0.15;
constexpr double kGivesUpAt = 0.5;  // of its share
// How much of the limit a plan may take so that one as cheap is hoped to fit,
// and the share of the time left for that.
constexpr double kNearly = 1.25;
constexpr double kShareOfSmall = 0.3;
// Table entries to touch for each round of preferences: so many, and this share
// of those of the search. Good preferences are found early; proving that there
// are none better would take as long as the search.
constexpr std::uint64_t kTieWork = 1'000'000'000;
constexpr std::uint64_t kTieShare = 4;

// The digits of i behind the point, the last one first: numbers from 0 to 1 from
// all over, 1/2, 1/4, 3/4, 1/8, 5/8, ... with base 2 (van der Corput).
double spread_out(std::uint32_t i, std::uint32_t base) {
  double out = 0;
  double digit = 1.0 / base;
  for (; i != 0; i /= base, digit /= base) out += digit * (i % base);
  return out;
}

class PlanSolver {
 public:
  PlanSolver(const PlanProblem& problem, const SolveLimits& limits)
      : problem_(problem),
        options_(problem.options()),
        limits_(limits),
        search_(problem, limits) {}

  PlanSolution run() {
    try {
      find_first_plans();
      search();
      prefer();
      price_alike();
    } catch (...) {
      search_.out().failure = refusal(std::current_exception());
      if (!search_.out().failure) throw;
    }
    return std::move(search_).finish();
  }

 private:
  // ---- plans of parts of the space

  SolveLimits share_of_rest(double share) const {
    return within(share * search_.seconds_left(),
                  share * static_cast<double>(search_.work_left()));
  }
  SolveLimits within(double seconds, double work) const {
    SolveLimits out{.seconds = seconds, .break_ties = false};
    out.first_plans = false;
    out.explains = false;
    if (limits_.work) out.work = static_cast<std::uint64_t>(std::max(work, 0.0));
    return out;
  }

  // The best plan of a part of the space, which the search then begins with.
  PlanSolution solve_part(const Restriction& restriction,
                          const SolveLimits& limits) {
    const RestrictedProblem part(problem_, restriction);
    PlanSolution found = solve_plan(part.problem(), limits);
    if (found.assignment) {
      found.assignment = part.widened(*std::move(found.assignment));
      parts_.push_back(*found.assignment);
    }
    search_.begin_with(found.assignment, found.work);
    return found;
  }

  void find_first_plans() {
    if (!limits_.first_plans || search_.out_of_limits()) return;
    const std::vector<FirstSpace> spaces = first_spaces(problem_);
    // The last share is for the mix of the others.
    auto left = static_cast<double>(spaces.size() + 1);
    const auto limits_of_next = [&] {
      const double seconds =
          kShareOfFirstPlans * limits_.seconds - search_.seconds();
      const double work =
          kShareOfFirstPlans * static_cast<double>(limits_.work.value_or(0)) -
          static_cast<double>(search_.best().work);
      const SolveLimits limits = within(seconds / left, work / left);
      left -= 1;
      return limits;
    };
    for (const FirstSpace& space : spaces) {
      if (search_.out_of_limits()) return;
      const PlanSolution found =
          solve_part(restriction_to(problem_, space), limits_of_next());
      if (!space.recipe) continue;
      PlanRecipe recipe{to_string(*space.recipe), found.status, std::nullopt,
                        found.evaluation.peak_bytes};
      if (found.assignment) {
        recipe.objective_nanoseconds = found.evaluation.objective;
      }
      search_.out().recipes.push_back(std::move(recipe));
    }
    mix(limits_of_next());
  }

  // Between the plans that were found.
  void mix(const SolveLimits& limits) {
    if (!limits_.first_plans || parts_.size() < 2 || search_.out_of_limits()) {
      return;
    }
    solve_part(choices_of_plans(problem_, parts_), limits);
  }

  // ---- the whole space

  void search() {
    // Most plans fit: then memory need not be looked at.
    const bool limited = options_.memory_limit.has_value();
    Attempt freely;
    if (limited) freely.gives_up_at = kGivesUpAt;
    if (!search_.solve({}, freely)) return;
    if (limited && !search_.found_here()) {
      reduce_each_time();
      make_small();
      if (!search_.found_here()) fit();
      network_.memory_limit = options_.memory_limit;
    }
    if (search_.found_here() && !search_.is_done()) {
      HiddenTime hidden(search_, network_, limits_.break_ties);
      network_.hidden_prices = hidden.run();
      alike_ = hidden.alike();
    }
    if (!parts_.empty() && search_.found_here() && !search_.is_done()) {
      parts_.push_back(*search_.best().assignment);
      mix(share_of_rest(kShareOfMixed));
    }
  }

  void reduce_each_time() {
    if (search_.out_of_limits()) return;
    if (const auto restriction = reduced_each_time(problem_)) {
      solve_part(*restriction, share_of_rest(kShareOfEachTime));
    }
  }

  // Where the cheapest plan nearly fits, one that costs as much may.
  void make_small() {
    const PlanEvaluation& free = search_.tried().evaluation;
    if (search_.stopped() || search_.out_of_limits() ||
        static_cast<double>(free.peak_bytes) >
            kNearly * static_cast<double>(*options_.memory_limit)) {
      return;
    }
    PlanSolution like;
    like.assignment = search_.last();
    like.evaluation = free;
    solver::SolveOptions how =
        search_.solver_options(kShareOfSmall * search_.seconds_left());
    how.work_limit = std::min(how.work_limit.value_or(kTieWork), kTieWork);
    if (auto small = small_assignment(problem_, how, like)) {
      search_.offer(*std::move(small));
    }
  }

  void fit() {
    NetworkOptions network;
    network.memory_limit = options_.memory_limit;
    if (!search_.solve(network, {.gives_up_at = kFirstGivesUpAt})) return;
    if (search_.fits(search_.tried().evaluation)) return;
    const auto fits = [&] {
      return !nothing_there_ && search_.fits(search_.tried().evaluation);
    };
    for (int round = 1; round <= kMostMemoryRounds && !fits(); ++round) {
      reserve(network);
      fits_in(network);
      if (search_.out_of_limits()) return;
    }
    if (!search_.found_here()) spread();
    // What was left of these looks makes the plan cheaper.
    if (search_.found_here() && !search_.is_done()) {
      search_.solve(best_look_, {.bounds = false});
    }
  }

  // A short look, for something that fits.
  bool solve_in_round(const NetworkOptions& network) {
    const NetworkOutcome solved =
        search_.solve(network, {.bounds = false,
                                .gives_up_at = kGivesUpAt,
                                .share_of_time = kShareOfRound,
                                .share_of_work = kShareOfRound});
    nothing_there_ = !solved;
    return !nothing_there_;
  }

  // What the last plan lacks at each slot, and a bit; where there is nothing
  // at all with what is set aside, half of that.
  void reserve(NetworkOptions& network) const {
    if (nothing_there_) {
      for (std::int64_t& bytes : network.reserved) bytes /= 2;
      return;
    }
    const std::vector<std::int64_t> bytes =
        bytes_by_slot(problem_, search_.last());
    network.reserved.resize(bytes.size(), 0);
    for (std::size_t t = 0; t < bytes.size(); ++t) {
      const std::int64_t lacking = bytes[t] - *options_.memory_limit;
      if (lacking > 0) network.reserved[t] += lacking + lacking / 4 + 1;
    }
  }

  // Where setting aside slot by slot what is lacking leads nowhere, what a
  // redistribution takes beside what the network counts is bounded: by shares
  // of the limit from all over, with as much set aside in all slots, with
  // nothing, and with something between.
  void spread() {
    if (search_.last().choices.empty()) return;
    const std::int64_t limit = *options_.memory_limit;
    for (std::uint32_t i = 1; i < kMostSpread; ++i) {
      NetworkOptions network;
      const auto most = static_cast<std::int64_t>(
          kMostUncounted * spread_out(i, 2) * static_cast<double>(limit));
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
    if (!search_.found_here()) return false;
    if (limits_.work) {
      return static_cast<double>(search_.best().work) >
             kShareOfSpread * static_cast<double>(*limits_.work);
    }
    return search_.seconds() > kShareOfSpread * limits_.seconds;
  }

  // A few rounds on a network, what is lacking set aside after each.
  void look_around(NetworkOptions& network) {
    for (int round = 0; round < kRoundsOfShare; ++round) {
      if (fits_in(network) || nothing_there_) return;
      if (search_.out_of_limits()) return;
      reserve(network);
    }
  }

  // Whether a short look at the network leads to a plan that fits.
  bool fits_in(const NetworkOptions& network) {
    const std::optional<std::int64_t> before = search_.found_here();
    if (!solve_in_round(network) || !search_.fits(search_.tried().evaluation)) {
      return false;
    }
    if (!before || *search_.found_here() < *before) {
      best_look_ = network;
    }
    return true;
  }

  // Among plans of this cost, one that is easier to live with.
  void prefer() {
    const double left = search_.seconds_left();
    if (!limits_.break_ties || !search_.found() || left <= 0 ||
        search_.out_of_work() || options_.stop.stop_requested()) {
      return;
    }
    search_.forget();
    solver::SolveOptions how = search_.solver_options(left);
    const std::uint64_t most = kTieWork + search_.best().work / kTieShare;
    how.work_limit = std::min(how.work_limit.value_or(most), most);
    break_ties(problem_, network_.hidden_prices, how, search_.out());
  }

  // What was met on the way, where nothing better lays out equal layers alike.
  void price_alike() {
    PlanSolution& best = search_.out();
    if (!limits_.break_ties || !search_.found() || !alike_ ||
        lies_alike(problem_, *best.assignment)) {
      return;
    }
    const std::int64_t more = *alike_ - best.evaluation.objective;
    best.alike_costs_more =
        std::min(best.alike_costs_more.value_or(more), more);
  }

  const PlanProblem& problem_;
  const PlanOptions& options_;
  SolveLimits limits_;
  NetworkSearch search_;
  NetworkOptions best_look_;           // in which a plan was found that fits
  bool nothing_there_ = false;         // in the last round
  std::optional<std::int64_t> alike_;  // met while hidden time was priced
  NetworkOptions network_;             // in which the best plan was found
  std::vector<PlanAssignment> parts_;  // plans of parts of the space
};

}  // namespace

PlanSolution solve_plan(const PlanProblem& problem) {
  return solve_plan(problem, {problem.options().time_limit_seconds,
                              problem.options().work_limit});
}

PlanSolution solve_plan(const PlanProblem& problem, const SolveLimits& limits) {
  return PlanSolver(problem, limits).run();
}

}  // namespace shardprop

#include "solver/search/solver.h"

#include "base/guard.h"
#include "base/parallel.h"
#include "solver/eliminate/bucket_elimination.h"
#include "solver/presolve/reduce.h"
#include "solver/search/forest_search.h"
#include "solver/tuning.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace shardprop::solver {
namespace {

// Returns a cost above any assignment's, or the largest exact double.
double safe_ceiling(Network& network) {
  double most = 1;
  const auto add = [&](const std::vector<double>& costs) {
    double here = 0;
    for (const double cost : costs) {
      if (std::isfinite(cost)) here = std::max(here, cost);
    }
    most += here;
  };
  for (const NetVariable& v : network.variables) {
    if (v.alive) add(v.costs);
  }
  for (const NetEdge& e : network.edges) {
    if (e.alive) add(network.tables().costs(e.table));
  }
  return std::min(most, kMostExact);
}

bool bytes_matter(const Network& network) {
  return std::any_of(
      network.variables.begin(), network.variables.end(),
      [](const NetVariable& v) { return v.alive && !v.segments.empty(); });
}

}  // namespace

bool Solver::is_enough() const {
  const Incumbent& best = state_.best;
  if (best.proven()) return true;
  if (options_.enough_cost && best.known() &&
      best.cost() <= *options_.enough_cost) {
    return true;
  }
  if (options_.enough_bound && best.bound() &&
      *best.bound() >= *options_.enough_bound) {
    return true;
  }
  if (options_.enough_gap <= 0 || !best.known() || !best.bound()) {
    return false;
  }
  const auto gap = static_cast<double>(best.cost() - *best.bound());
  return gap <=
         options_.enough_gap * std::abs(static_cast<double>(best.cost()));
}

bool Solver::is_close() const {
  return !bytes_matter(state_.network) && state_.best.known() &&
         state_.dual_gap() <= tuning::kBoundFirstGap * state_.core_target() &&
         !state_.dual->stalled();
}

Solution Solver::run() {
  std::optional<Error> failure;
  try {
    solve();
  } catch (...) {
    failure = refusal(std::current_exception());
    if (!failure) throw;
  }
  Solution solution = finish();
  solution.failure = std::move(failure);
  return solution;
}

// Offers the assignment with the fewest bytes, at any cost, as the first one.
void Solver::offer_leanest() {
  if (!bytes_matter(state_.network)) return;
  std::vector<int> choices = leanest(*state_.core);
  ForestSearch look(*state_.core, options_.seed);
  look.assign(choices);
  if (!look.feasible()) return;
  state_.offer(choices, state_.core->network_variable);
  core_best_cost_ = look.cost();
  core_best_ = std::move(choices);
}

// Offers a first assignment if the search ended without one, for example because
// its work was spent: the choices that one sweep of messages leads to, or those of
// the shortest search. It is a part of local search. offer_leanest() offers the
// assignments whose bytes count. A limit of 0 asks for no search.
void Solver::offer_decoded() {
  if (bytes_matter(state_.network) || state_.budget.is_cut_off() ||
      state_.budget.work_limit() == 0) {
    return;
  }
  DualBound bound(*state_.core, /*leaps=*/false);
  bound.sweep();
  ForestSearch look(*state_.core, options_.seed);
  look.assign(bound.decode());
  if (!look.feasible()) look.run(tuning::kFirstRoundWork, state_.budget);
  state_.spent_elsewhere += bound.work() + look.work();
  const std::vector<int>& found =
      look.feasible() ? look.choices() : look.best();
  if (!found.empty()) state_.offer(found, state_.core->network_variable);
}

void Solver::offer_known() {
  for (const Assignment& known : options_.known) state_.best.offer_known(known);
}

void Solver::solve() {
  reduce(state_.network, options_.passes, state_.passes, state_.budget);
  if (state_.network.infeasible) {
    state_.best.close(state_.network.offset);
    return;
  }
  state_.best.raise_bound(state_.network.offset);
  const double ceiling = safe_ceiling(state_.network);
  exact_ = ceiling < kMostExact;
  if (solve_at_once()) return;
  stopped_by_ = state_.budget.cut_off();
  if (stopped_by_ && !bytes_matter(state_.network)) {
    // The time is already over, so a search would only copy the network.
    offer_known();
    return;
  }
  state_.core = std::make_unique<Core>(state_.network, ceiling);
  offer_leanest();
  offer_known();
  dual_.gather();
  search();
  if (enabled(Pass::kLocalSearch) && !state_.best.known() &&
      !state_.best.infeasible()) {
    offer_decoded();
  }
}

bool Solver::solve_at_once() {
  Incumbent& best = state_.best;
  const bool eliminates =
      enabled(Pass::kElimination) && !bytes_matter(state_.network);
  if (eliminates) {
    const auto solved = state_.run(Pass::kElimination, [&] {
      return eliminate_all(state_.network, tuning::kMostEliminationEntries,
                           state_.spent_elsewhere);
    });
    if (solved.has_value() && !std::isfinite(solved->cost)) {
      best.close(Incumbent::kNoCost);
      return true;
    }
    if (solved.has_value()) {
      best.offer(solved->choices);
      best.close(state_.network.offset + static_cast<Int128>(solved->cost));
      return true;
    }
  }
  if (state_.network.num_alive() == 0) {
    best.offer(std::vector<int>(state_.network.variables.size(), 0));
    best.close(state_.network.offset);
    return true;
  }
  if (eliminates) elimination_.allow();
  return false;
}

void Solver::search() {
  make_workers();
  const Incumbent& best = state_.best;
  std::uint64_t work = tuning::kFirstRoundWork;
  while (!is_enough() && !is_stopped()) {
    if (dual_.is_due(rounds_)) {
      dual_.start();
      if (dual_.is_warm()) {
        dual_.gather();
        if (is_enough()) break;
      }
    }
    if (elimination_.is_due()) {
      state_.run(Pass::kLateElimination, [&] { elimination_.run(); });
    }
    if (front_.is_due()) {
      state_.run(Pass::kFrontElimination, [&] { front_.run(); });
    }
    if (best.proven()) break;
    if (!bytes_matter(state_.network) && !front_.is_closing() &&
        probing_.is_due()) {
      state_.run(Pass::kProbing, [&] { probing_.run(); });
    }
    if (best.proven()) break;
    if (branching_.is_due(rounds_)) branching_.start();
    if (best.proven()) break;
    guide_workers();
    round(work);
    work = std::min(work + work / tuning::kRoundGrowthDivisor,
                    tuning::kLongestRoundWork);
    gather();
    if (is_blind() || !may_go_on() || is_idle()) break;
  }
  too_fine_ = is_blind();
}

bool Solver::is_blind() const {
  return !exact_ && !state_.best.known() &&
         (state_.best.infeasible() || rounds_ >= tuning::kRoundsInFineUnits);
}

void Solver::make_workers() {
  Rng seeds(options_.seed);
  const std::size_t workers =
      state_.budget.work_limit() ? tuning::kWorkersUnderWorkLimit : threads();
  for (std::size_t i = 0; i < workers; ++i) {
    workers_.push_back(std::make_unique<SearchWorker>(
        *state_.core, seeds.next(), enabled(Pass::kRecombination)));
  }
}

void Solver::guide_workers() {
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    workers_[i]->guide(
        {core_best_.empty() ? nullptr : &core_best_, core_best_cost_,
         state_.dual ? state_.dual->best_bound() : -kInfinity, &dual_.decoded(),
         dual_.prices().empty() ? nullptr : &dual_.prices(), dual_.settling(),
         i > 0 || workers_.size() == 1});
  }
}

Solver::Task Solver::first_task() const {
  const bool search_on = enabled(Pass::kLocalSearch);
  const bool dual_on = enabled(Pass::kDualBound) && state_.dual != nullptr;
  const bool branch_on = enabled(Pass::kBranchAndBound) && branching_.is_open();
  const int turn = rounds_ % tuning::kDualTurn;
  // With one worker, the search keeps every other round.
  if (dual_on && (dual_.settling() || is_close()) &&
      (workers_.size() > 1 || rounds_ % 2 == 1)) {
    return Task::kDual;
  }
  if (branch_on && (turn == 1 || (is_small() && turn == 2) || !search_on)) {
    return Task::kBranch;
  }
  return dual_on && (turn == 3 || !search_on) && !state_.dual->stalled()
             ? Task::kDual
             : Task::kSearch;
}

void Solver::round(std::uint64_t work) {
  const bool search_on = enabled(Pass::kLocalSearch);
  const Task first = first_task();
  std::vector<std::optional<double>> took(workers_.size());
  const auto timed_search = [&](std::size_t i) {
    const auto start = std::chrono::steady_clock::now();
    workers_[i]->run(work, state_.budget);
    took[i] =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
  };
  const auto in_first_place = [&] {
    if (first == Task::kDual) {
      dual_.run(work);
    } else if (first == Task::kBranch) {
      branching_.run(work);
    } else if (search_on) {
      timed_search(0);
    }
  };
  run_tasks(search_on ? workers_.size() : 1, threads(), [&](std::size_t i) {
    i == 0 ? in_first_place() : timed_search(i);
  });
  for (const std::optional<double>& seconds : took) {
    if (seconds) state_.passes.add(Pass::kLocalSearch, 1, *seconds);
  }
  ++rounds_;
}

// All workers have ended; their results are combined in a fixed order.
void Solver::gather() {
  const Incumbent::State before = state_.best.state();
  for (const auto& worker : workers_) {
    if (worker->best().empty() || worker->best_cost() >= core_best_cost_) {
      continue;
    }
    core_best_cost_ = worker->best_cost();
    core_best_ = worker->best();
    state_.offer(core_best_, state_.core->network_variable);
  }
  state_.credit(Pass::kLocalSearch, before);
  if (std::vector<int> found = branching_.gather(); !found.empty()) {
    core_best_ = std::move(found);
    core_best_cost_ = state_.core_target();
  }
  dual_.gather();
  count_work();
  tell_progress();
}

void Solver::count_work() {
  std::uint64_t work = state_.spent_elsewhere + branching_.work() +
                       (state_.dual ? state_.dual->work() : 0);
  for (const auto& worker : workers_) work += worker->work();
  state_.budget.charge(work - state_.budget.work_spent());
  state_.counted_elsewhere = state_.spent_elsewhere;
}

void Solver::tell_progress() const {
  if (!options_.progress) return;
  Progress progress;
  progress.seconds = state_.budget.seconds_spent();
  if (state_.best.known()) progress.cost = state_.best.cost();
  progress.lower_bound = state_.best.bound();
  options_.progress(progress);
}

bool Solver::may_go_on() {
  const Incumbent& best = state_.best;
  if (!options_.go_on || !best.known() || best.proven()) return true;
  const double of_time = state_.budget.share_of_time_spent();
  const double spent = state_.budget.share_spent();
  return options_.go_on(best.assignment(), of_time >= tuning::kOutOfTimeShare
                                               ? std::max(of_time, spent)
                                               : spent);
}

bool Solver::is_idle() const {
  return !enabled(Pass::kLocalSearch) &&
         (!state_.dual || state_.dual->stalled()) && !branching_.is_open() &&
         rounds_ > tuning::kIdleRounds;
}

Solution Solver::finish() {
  count_work();
  Solution solution;
  const Incumbent& best = state_.best;
  if (best.infeasible()) {
    solution.status = Status::kInfeasible;
  } else {
    solution.lower_bound = best.bound();
    // Beyond exact doubles, a bound is valid only up to rounding.
    if (solution.lower_bound && !exact_ && best.known() &&
        state_.core_target() >= kMostExact) {
      Int128& bound = *solution.lower_bound;
      bound -= (bound < 0 ? -bound : bound) >> 40;
    }
    if (best.known()) {
      solution.cost = best.cost();
      solution.assignment = best.assignment();
      solution.status = solution.lower_bound.has_value() &&
                                *solution.lower_bound >= *solution.cost
                            ? Status::kOptimal
                            : Status::kFeasible;
    }
  }
  if (solution.status != Status::kOptimal &&
      solution.status != Status::kInfeasible) {
    solution.stopped_by = stopped_by_;
  }
  if (options_.messages != nullptr) dual_.leave(*options_.messages);
  dual_.finish();
  branching_.finish();
  for (const auto& worker : workers_) {
    state_.passes.add_work(Pass::kLocalSearch, worker->work());
    worker->record_recombination(state_.passes, state_.network.unit);
  }
  solution.procedures = state_.passes.procedures(options_.passes);
  solution.seconds = state_.budget.seconds_spent();
  solution.work = state_.budget.work_spent();
  return solution;
}

}  // namespace shardprop::solver

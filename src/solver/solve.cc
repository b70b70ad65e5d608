#include <shardprop/solver/solve.h>

#include "base/guard.h"
#include "base/parallel.h"
#include "solver/branch_and_bound.h"
#include "solver/bucket_elimination.h"
#include "solver/clash.h"
#include "solver/core.h"
#include "solver/dual_bound.h"
#include "solver/incumbent.h"
#include "solver/pass_clock.h"
#include "solver/reduce.h"
#include "solver/search_worker.h"

#include <shardprop/base/error.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>

namespace shardprop::solver {
namespace {

constexpr std::uint64_t kFirstRound = 2'000'000;  // work of a worker
// Under a work limit there are as many workers, however many threads run them,
// so that the answer is the same on any machine. Few, since what one finds out
// helps it more than what others do.
constexpr int kWorkersUnderWorkLimit = 2;
constexpr std::uint64_t kLongestRound = 40'000'000;
constexpr std::size_t kEliminationCap = 1U << 25;
// The dual has the first worker's turns to itself until it stalls or has done
// this much; then it gets one round in a few.
constexpr std::uint64_t kDualFirst = 2'500'000'000;
constexpr int kDualTurn = 4;
// Networks of more choices than this are not worth branching on.
constexpr std::size_t kBranchChoices = 8'000;
constexpr std::size_t kSmallChoices = 4096;
// Share of the cost within which the dual bound is close.
constexpr double kCloseGap = 0.02;
// Share of the choices at which eliminating what pruning has left is tried.
constexpr double kFewChoices = 0.5;
// Elimination at length: begun when it would touch at most this many times what
// has been touched so far (its loops are as much faster), and if its tables
// take no more than these bytes.
constexpr double kEliminationShare = 4;
constexpr double kMostTouched = 0x1p38;
constexpr double kMostTableBytes = 0x1p31;
constexpr std::uint64_t kYoungBranching =
    200'000'000;  // work after which it stays
constexpr double kMostExact = 0x1p52;

// More than any assignment can cost, or as much as doubles count exactly.
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

// Elimination counts small costs in 32 bits.
double bytes_of_entry(double ceiling) {
  return ceiling <= kMostNarrowCost ? 4 : 8;
}

class Solver {
 public:
  Solver(const Problem& problem, const SolveOptions& options)
      : options_(options),
        stop_(stop_signal(options)),
        network_(problem),
        best_(problem, network_) {}

  Solution run();

 private:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         options_.start)
        .count();
  }
  bool out_of_work() const {
    return options_.work_limit && work_ >= *options_.work_limit;
  }
  std::size_t threads() const {
    return static_cast<std::size_t>(std::max(1, options_.threads));
  }
  // Until it is proven, stopped or out of time or work.
  void solve();
  // False once the caller has seen enough.
  bool may_go_on();
  void search();
  void round(std::uint64_t work);
  void gather();
  void count_work();
  void offer_core_choices(const std::vector<int>& choices);
  void start_dual();
  bool branching_is_due() const;
  // Between the dual bound and the best known cost; infinite without either.
  double dual_gap() const {
    return dual_ && best_.known() ? core_target() - dual_->best_bound()
                                  : kInfinity;
  }
  bool dual_settling() const {
    return dual_ != nullptr && !dual_->stalled() && dual_->work() < kDualFirst;
  }
  // What is left without what cannot be part of a better assignment;
  // `variable` maps its variables to the network's.
  Network pruned_root(std::vector<int>& variable);
  void start_branching();
  bool elimination_is_due() const;
  void eliminate_at_length();
  bool eliminate_rest(const Network& pruned, const std::vector<int>& variable,
                      double most_touched);
  double core_target() const {
    return best_.known()
               ? static_cast<double>(best_.cost_in_units() - network_.offset)
               : kInfinity;
  }
  Solution finish();

  const SolveOptions& options_;
  StopSignal stop_;
  PassClock clock_;
  Network network_;

  Incumbent best_;
  std::vector<int> core_best_;  // the same, if it came from the core
  double core_best_cost_ = kInfinity;
  bool exact_ = true;  // no cost of interest exceeds what doubles count
  // What eliminating all would touch; infinite where that is out of reach.
  double elimination_touches_ = kInfinity;

  std::unique_ptr<Core> core_;
  std::vector<std::unique_ptr<SearchWorker>> workers_;
  std::unique_ptr<Core> dual_core_;
  std::unique_ptr<DualBound> dual_;
  bool dual_has_target_ = false;
  std::vector<int> decoded_;
  std::vector<double> prices_;
  std::unique_ptr<BranchAndBound> branching_;
  std::vector<int> branching_variable_;
  bool tried_branching_ = false;
  Int128 branched_below_ = Incumbent::kNoCost;
  double branched_gap_ = kInfinity;
  bool asked_ = false;  // whether to go on, with the best cost then
  Int128 asked_cost_ = 0;
  int rounds_ = 0;
  std::uint64_t spent_elsewhere_ = 0;  // work of what is gone again
  std::uint64_t work_ = 0;
};

void Solver::offer_core_choices(const std::vector<int>& choices) {
  std::vector<int> all(network_.variables.size(), 0);
  for (std::size_t v = 0; v < choices.size(); ++v) {
    all[static_cast<std::size_t>(core_->network_variable[v])] = choices[v];
  }
  best_.offer(std::move(all));
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

void Solver::solve() {
  reduce(network_, options_.passes, clock_, stop_);
  if (network_.infeasible) {
    best_.close(network_.offset);
    return;
  }
  best_.raise_bound(network_.offset);
  const double ceiling = safe_ceiling(network_);
  exact_ = ceiling < kMostExact;
  const bool memory = std::any_of(
      network_.variables.begin(), network_.variables.end(),
      [](const NetVariable& v) { return v.alive && !v.segments.empty(); });
  if (!memory && options_.passes.enabled(Pass::kElimination)) {
    const auto solved = clock_.time(Pass::kElimination, [&] {
      return eliminate_all(network_, kEliminationCap, spent_elsewhere_);
    });
    if (solved.has_value() && !std::isfinite(solved->cost)) {
      best_.close(Incumbent::kNoCost);
      return;
    }
    if (solved.has_value()) {
      best_.offer(solved->choices);
      best_.close(network_.offset + static_cast<Int128>(solved->cost));
      return;
    }
  }
  if (network_.num_alive() == 0) {
    best_.offer(std::vector<int>(network_.variables.size(), 0));
    best_.close(network_.offset);
    return;
  }
  if (!memory && options_.passes.enabled(Pass::kElimination)) {
    const auto order =
        order_elimination(network_, {kMostTouched, kMostTableBytes / 4}, stop_);
    if (order) elimination_touches_ = order->touched;
  }
  core_ = std::make_unique<Core>(network_, ceiling);
  decoded_ = DualBound(*core_).decode();
  search();
}

void Solver::start_dual() {
  const double target = core_target();
  std::vector<double> prices =
      dual_ ? dual_->best_prices() : std::vector<double>();
  if (dual_) spent_elsewhere_ += dual_->work();
  dual_.reset();
  // Entries above the best known cost cannot be part of anything better; a low
  // ceiling makes the bound stronger and its sums finer.
  dual_core_ = std::make_unique<Core>(
      network_, best_.known() ? std::min(core_->ceiling, std::max(1.0, target))
                              : core_->ceiling);
  dual_ = std::make_unique<DualBound>(*dual_core_);
  dual_has_target_ = best_.known();
  if (!prices.empty()) dual_->set_prices(prices);
}

// Solves what pruning has left without a search, where bytes do not matter and
// tables stay small. True when nothing is left to find out.
bool Solver::eliminate_rest(const Network& pruned,
                            const std::vector<int>& variable,
                            double most_touched) {
  if (!options_.passes.enabled(Pass::kElimination)) return false;
  for (const NetVariable& v : pruned.variables) {
    if (!v.segments.empty()) return false;
  }
  Network rest = pruned;
  reduce(rest, options_.passes, clock_, stop_);
  const Int128 below = best_.cost_in_units();
  Int128 least = Incumbent::kNoCost;
  if (!rest.infeasible && rest.offset < below) {
    const auto room = static_cast<double>(below - rest.offset);
    const auto solved =
        clock_.time(Pass::kElimination, [&]() -> std::optional<Eliminated> {
          const auto order = order_elimination(
              rest, {most_touched, kMostTableBytes / bytes_of_entry(room)},
              stop_);
          if (!order) return std::nullopt;
          return eliminate_in_order(rest, *order,
                                    room < kMostExact ? room : kInfinity,
                                    options_.threads, stop_, spent_elsewhere_);
        });
    if (!solved.has_value()) return false;
    if (std::isfinite(solved->cost)) {
      least = rest.offset + static_cast<Int128>(solved->cost);
    }
    if (least < below) {
      const Assignment full = rest.expand(solved->choices);
      std::vector<int> all(network_.variables.size(), 0);
      for (std::size_t v = 0; v < variable.size(); ++v) {
        all[static_cast<std::size_t>(variable[v])] = static_cast<int>(full[v]);
      }
      best_.offer(std::move(all));
    }
  }
  best_.close(std::min(least, below));
  return true;
}

// Not before as much has been spent on the search: most problems need less.
bool Solver::elimination_is_due() const {
  if (!best_.known() || elimination_touches_ > kMostTouched) return false;
  const auto worked = static_cast<double>(work_);
  const bool affordable =
      !options_.work_limit || elimination_touches_ + worked <=
                                  static_cast<double>(*options_.work_limit);
  return affordable && elimination_touches_ <= kEliminationShare * worked;
}

void Solver::eliminate_at_length() {
  std::vector<int> variable;
  const Network root = pruned_root(variable);
  if (root.infeasible) {
    best_.close(best_.cost_in_units());
  } else if (!eliminate_rest(root, variable, elimination_touches_)) {
    // What is pruned may be ordered less well; later there is more to spend.
    elimination_touches_ *= 2;
  }
}

Network Solver::pruned_root(std::vector<int>& variable) {
  Network root = network_.extract(variable);
  if (!dual_ || dual_->best_bound() == -kInfinity) return root;
  dual_->restore_best();
  const std::vector<double> extra = dual_->choice_bounds();
  const double room = core_target();
  for (std::size_t v = 0; v < variable.size() && !root.infeasible; ++v) {
    std::vector<int> kept;
    for (int c = 0; c < dual_core_->choices(static_cast<int>(v)); ++c) {
      const double bound = dual_->best_bound() +
                           extra[static_cast<std::size_t>(dual_core_->at[v]) +
                                 static_cast<std::size_t>(c)];
      if (std::ceil(bound) < room) kept.push_back(c);
    }
    root.keep_choices(static_cast<int>(v), kept);
  }
  return root;
}

// Drops what cannot be part of a better assignment, and branches on the rest
// if that is small.
void Solver::start_branching() {
  const Int128 below = best_.cost_in_units();
  tried_branching_ = true;
  branched_below_ = below;
  branched_gap_ = dual_gap();
  std::vector<int> variable;
  Network root = pruned_root(variable);
  std::size_t choices = 0;
  for (const NetVariable& v : root.variables) choices += v.costs.size();
  const bool few = static_cast<double>(choices) <=
                   kFewChoices * static_cast<double>(core_->unary.size());
  if (!root.infeasible && few &&
      eliminate_rest(root, variable, kEliminationCap)) {
    return;
  }
  if (root.infeasible) {
    // Nothing is better than what is known.
    best_.close(below);
  } else if (choices <= kBranchChoices) {
    if (branching_) spent_elsewhere_ += branching_->work();
    branching_variable_ = std::move(variable);
    branching_ = std::make_unique<BranchAndBound>(
        std::move(root), below,
        dual_ && dual_->best_bound() > -kInfinity ? dual_->best_prices()
                                                  : std::vector<double>(),
        options_.passes, options_.seed);
  }
}

// Once the dual has done what it can, at once on small problems, and again
// when a better assignment lets more be dropped early in the search.
bool Solver::branching_is_due() const {
  if (!options_.passes.enabled(Pass::kBranchAndBound)) return false;
  // Pruning pays long before the bound has settled where it comes close.
  if (dual_gap() <= kCloseGap * core_target() &&
      dual_gap() <= branched_gap_ / 2 && !(branching_ && branching_->done())) {
    return true;
  }
  const bool small = core_->unary.size() <= kSmallChoices;
  const bool ready =
      small ? rounds_ >= 2
            : !dual_ || dual_->stalled() || dual_->work() > kDualFirst;
  if (!ready || (tried_branching_ && (!best_.known() || best_.cost_in_units() ==
                                                            branched_below_))) {
    return false;
  }
  return !branching_ ||
         (!branching_->done() && branching_->work() < kYoungBranching);
}

void Solver::round(std::uint64_t work) {
  const PassSet& passes = options_.passes;
  const bool dual_on = passes.enabled(Pass::kDualBound) && dual_ != nullptr;
  const bool branch_on = passes.enabled(Pass::kBranchAndBound) && branching_ &&
                         !branching_->done();
  const bool search_on = passes.enabled(Pass::kLocalSearch);
  const bool dual_first = dual_on && dual_settling();
  const bool small = core_->unary.size() <= kSmallChoices;
  // What is done in the first worker's place; with one worker, search keeps
  // every other round.
  const int turn = rounds_ % kDualTurn;
  enum class Task { kSearch, kDual, kBranch } first = Task::kSearch;
  const bool dual_now = dual_first && (workers_.size() > 1 || rounds_ % 2 == 1);
  const bool branch_now =
      branch_on && (turn == 1 || (small && turn == 2) || !search_on);
  const bool dual_in_turn =
      dual_on && (turn == 3 || !search_on) && !dual_->stalled();
  if (!dual_now && branch_now) {
    first = Task::kBranch;
  } else if (dual_now || dual_in_turn) {
    first = Task::kDual;
  }
  std::vector<double> took(workers_.size(), 0);
  const auto timed_search = [&](std::size_t i) {
    const auto start = std::chrono::steady_clock::now();
    workers_[i]->run(work, stop_);
    took[i] =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
  };
  const auto in_first_place = [&] {
    if (first == Task::kDual) {
      clock_.time(Pass::kDualBound, [&] {
        const std::uint64_t until = dual_->work() + work;
        while (dual_->work() < until && !dual_->stalled() && !stop_.raised()) {
          dual_->advance(core_target());
        }
      });
    } else if (first == Task::kBranch) {
      const auto start = std::chrono::steady_clock::now();
      branching_->run(work, stop_, clock_);
      clock_.add(Pass::kBranchAndBound, 1,
                 std::chrono::duration<double>(
                     std::chrono::steady_clock::now() - start)
                     .count());
    } else if (search_on) {
      timed_search(0);
    }
  };
  run_tasks(search_on ? workers_.size() : 1, threads(), [&](std::size_t i) {
    i == 0 ? in_first_place() : timed_search(i);
  });
  for (const double seconds : took) {
    if (seconds > 0) clock_.add(Pass::kLocalSearch, 1, seconds);
  }
  ++rounds_;
}

// Workers have met: what they found is put together in a fixed order.
void Solver::gather() {
  for (const auto& worker : workers_) {
    if (worker->best().empty() || worker->best_cost() >= core_best_cost_)
      continue;
    core_best_cost_ = worker->best_cost();
    core_best_ = worker->best();
    offer_core_choices(core_best_);
  }
  if (branching_) {
    if (branching_->improved() &&
        branching_->best_cost() < best_.cost_in_units()) {
      std::vector<int> all(network_.variables.size(), 0);
      for (std::size_t v = 0; v < branching_variable_.size(); ++v) {
        all[static_cast<std::size_t>(branching_variable_[v])] =
            branching_->choices()[v];
      }
      // The core numbers what is alive in the same order.
      core_best_ = branching_->choices();
      best_.offer(std::move(all));
      core_best_cost_ = core_target();
    }
    if (best_.known()) branching_->lower(best_.cost_in_units());
    if (branching_->done()) {
      best_.close(branching_->bound());
    } else if (best_.known()) {
      best_.raise_bound(branching_->bound());
    }
  }
  if (dual_ && dual_->best_bound() > -kInfinity) {
    const Int128 bound = dual_core_->offset +
                         static_cast<Int128>(std::ceil(dual_->best_bound()));
    best_.raise_bound(bound);
    prices_ = dual_->best_prices();
    decoded_ = dual_->decode();
  }
  count_work();
  if (options_.progress) {
    Progress progress;
    progress.seconds = seconds();
    if (best_.known()) progress.cost = best_.cost();
    progress.lower_bound = best_.bound();
    options_.progress(progress);
  }
}

void Solver::count_work() {
  work_ = spent_elsewhere_ + (dual_ ? dual_->work() : 0) +
          (branching_ ? branching_->work() : 0);
  for (const auto& worker : workers_) work_ += worker->work();
}

bool Solver::may_go_on() {
  if (!options_.go_on || !best_.known() || best_.proven()) return true;
  // A work limit is meant to decide alone, unless time runs out.
  const double share_of_time = options_.work_limit ? 0.9 : 0.5;
  const bool half = seconds() >= options_.time_limit_seconds * share_of_time ||
                    (options_.work_limit && work_ >= *options_.work_limit / 2);
  if (!half || (asked_ && asked_cost_ == best_.cost())) return true;
  asked_ = true;
  asked_cost_ = best_.cost();
  return options_.go_on(best_.assignment());
}

void Solver::search() {
  Rng seeds(options_.seed);
  const std::size_t workers =
      options_.work_limit ? kWorkersUnderWorkLimit : threads();
  for (std::size_t i = 0; i < workers; ++i) {
    workers_.push_back(std::make_unique<SearchWorker>(*core_, seeds.next()));
  }
  std::uint64_t work = kFirstRound;
  while (!best_.proven() && !stop_.raised() && !out_of_work()) {
    if (options_.passes.enabled(Pass::kDualBound)) {
      if (!dual_ ? best_.known() || rounds_ == 4
                 : best_.known() && !dual_has_target_) {
        start_dual();
      }
    }
    if (elimination_is_due()) eliminate_at_length();
    if (best_.proven()) break;
    if (branching_is_due()) start_branching();
    if (best_.proven()) break;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      workers_[i]->guide({core_best_.empty() ? nullptr : &core_best_,
                          core_best_cost_,
                          dual_ ? dual_->best_bound() : -kInfinity, &decoded_,
                          prices_.empty() ? nullptr : &prices_, dual_settling(),
                          i > 0 || workers_.size() == 1});
    }
    round(work);
    work = std::min(work + work / 4, kLongestRound);
    gather();
    if (!may_go_on()) break;
    const bool idle = !options_.passes.enabled(Pass::kLocalSearch) &&
                      (!dual_ || dual_->stalled()) &&
                      (!branching_ || branching_->done()) && rounds_ > 8;
    if (idle) break;
  }
}

Solution Solver::finish() {
  count_work();
  Solution solution;
  if (best_.infeasible()) {
    solution.status = Status::kInfeasible;
  } else {
    solution.lower_bound = best_.bound();
    // Beyond exact doubles a bound is true up to rounding only.
    if (solution.lower_bound && !exact_ && best_.known() &&
        core_target() >= kMostExact) {
      Int128& bound = *solution.lower_bound;
      bound -= (bound < 0 ? -bound : bound) >> 40;
    }
    if (best_.known()) {
      solution.cost = best_.cost();
      solution.assignment = best_.assignment();
      solution.status = solution.lower_bound.has_value() &&
                                *solution.lower_bound >= *solution.cost
                            ? Status::kOptimal
                            : Status::kFeasible;
    }
  }
  solution.passes = clock_.stats();
  solution.seconds = seconds();
  solution.work = work_;
  return solution;
}

}  // namespace

Solution solve_plainly(const Problem& problem, const SolveOptions& options) {
  auto solution = guarded(
      [&]() -> Result<Solution> { return Solver(problem, options).run(); });
  if (solution) return *std::move(solution);
  return {.failure = std::move(solution).error()};
}

Solution solve(const Problem& problem, const SolveOptions& options) {
  if (auto valid = validate(options); !valid) {
    return {.failure = std::move(valid).error()};
  }
  Solution solution = solve_plainly(problem, options);
  if (solution.status == Status::kInfeasible) {
    auto clash = guarded(
        [&]() -> Result<Clash> { return find_clash(problem, options); });
    if (clash) {
      solution.clash = *std::move(clash);
    } else {
      solution.failure = std::move(clash).error();
    }
    solution.seconds = std::chrono::duration<double>(
                           std::chrono::steady_clock::now() - options.start)
                           .count();
  }
  return solution;
}

}  // namespace shardprop::solver

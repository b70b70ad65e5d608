#include <shardprop/solver/solve.h>

#include "solver/branch_and_bound.h"
#include "solver/bucket_elimination.h"
#include "solver/clash.h"
#include "solver/core.h"
#include "solver/dual_bound.h"
#include "solver/pass_clock.h"
#include "solver/reduce.h"
#include "solver/search_worker.h"

#include <shardprop/base/error.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <thread>

namespace shardprop::solver {
namespace {

constexpr std::uint64_t kFirstRound = 2'000'000;  // work of a thread
constexpr std::uint64_t kLongestRound = 40'000'000;
constexpr std::size_t kEliminationCap = 1U << 25;
// The dual has the first thread to itself until it stalls or has done this
// much; then it gets one round in a few.
constexpr std::uint64_t kDualFirst = 2'500'000'000;
constexpr int kDualTurn = 4;
// Networks of more choices than this are not worth branching on.
constexpr std::size_t kBranchChoices = 8'000;
constexpr std::size_t kSmallChoices = 4096;
// Share of the cost within which the dual bound is close.
constexpr double kCloseGap = 0.02;
// Share of the choices at which eliminating what pruning has left is tried.
constexpr double kFewChoices = 0.5;
constexpr std::uint64_t kYoungBranching =
    200'000'000;  // work after which it stays
constexpr double kMostExact = 0x1p52;
constexpr Int128 kNoCost = Int128{1} << 120;

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

class Solver {
 public:
  Solver(const Problem& problem, const SolveOptions& options)
      : problem_(problem),
        options_(options),
        stop_(stop_signal(options)),
        network_(problem) {}

  Solution run();

 private:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         options_.start)
        .count();
  }
  bool out_of_work() const {
    return options_.work_limit != 0 && work_ >= options_.work_limit;
  }
  bool proven() const {
    return infeasible_ || (have_cost_ && bound_known_ && bound_ >= cost_);
  }
  void search();
  void round(std::uint64_t work);
  void gather();
  void take_network_choices(std::vector<int> choices);
  void take_core_choices(const std::vector<int>& choices);
  void raise_bound(Int128 bound_in_units);
  void start_dual();
  bool branching_is_due() const;
  // Between the dual bound and the best known cost; infinite without either.
  double dual_gap() const {
    return dual_ && have_cost_ ? core_target() - dual_->best_bound()
                               : kInfinity;
  }
  bool dual_settling() const {
    return dual_ != nullptr && !dual_->stalled() && dual_->work() < kDualFirst;
  }
  void start_branching();
  bool eliminate_rest(const Network& pruned, const std::vector<int>& variable);
  // The best known cost in the network's units, rounded up: what costs as much
  // in units is no better.
  Int128 cost_in_units() const {
    const Int128 down = cost_ / network_.unit;
    return down + (cost_ > down * network_.unit ? 1 : 0);
  }
  double core_target() const {
    return have_cost_ ? static_cast<double>(cost_in_units() - network_.offset)
                      : kInfinity;
  }
  Solution finish();

  const Problem& problem_;
  const SolveOptions& options_;
  StopSignal stop_;
  PassClock clock_;
  Network network_;

  // The best assignment, judged by the checker.
  bool have_cost_ = false;
  Int128 cost_ = 0;
  Assignment assignment_;
  std::vector<int> core_best_;  // the same, if it came from the core
  double core_best_cost_ = kInfinity;
  bool bound_known_ = false;
  Int128 bound_ = 0;
  bool infeasible_ = false;
  bool exact_ = true;  // no cost of interest exceeds what doubles count

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
  Int128 branched_below_ = kNoCost;
  double branched_gap_ = kInfinity;
  int rounds_ = 0;
  std::uint64_t spent_elsewhere_ = 0;  // work of what is gone again
  std::uint64_t work_ = 0;
};

void Solver::take_network_choices(std::vector<int> choices) {
  Assignment full = network_.expand(std::move(choices));
  const auto judged = evaluate(problem_, full);
  if (!judged.has_value() || !judged->feasible()) {
    throw InternalError("the solver accepted an assignment that does not hold");
  }
  if (have_cost_ && judged->cost >= cost_) return;
  have_cost_ = true;
  cost_ = judged->cost;
  assignment_ = std::move(full);
}

void Solver::take_core_choices(const std::vector<int>& choices) {
  std::vector<int> all(network_.variables.size(), 0);
  for (std::size_t v = 0; v < choices.size(); ++v) {
    all[static_cast<std::size_t>(core_->network_variable[v])] = choices[v];
  }
  take_network_choices(std::move(all));
}

void Solver::raise_bound(Int128 bound_in_units) {
  Int128 bound = bound_in_units * network_.unit;
  if (have_cost_) bound = std::min(bound, cost_);
  if (!bound_known_ || bound > bound_) bound_ = bound;
  bound_known_ = true;
}

Solution Solver::run() {
  reduce(network_, options_.passes, clock_);
  if (network_.infeasible) {
    infeasible_ = true;
    return finish();
  }
  raise_bound(network_.offset);
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
      infeasible_ = true;
      return finish();
    }
    if (solved.has_value()) {
      take_network_choices(solved->choices);
      raise_bound(network_.offset + static_cast<Int128>(solved->cost));
      return finish();
    }
  }
  if (network_.num_alive() == 0) {
    take_network_choices(std::vector<int>(network_.variables.size(), 0));
    raise_bound(network_.offset);
    return finish();
  }
  core_ = std::make_unique<Core>(network_, ceiling);
  decoded_ = DualBound(*core_).decode();
  search();
  return finish();
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
      network_, have_cost_ ? std::min(core_->ceiling, std::max(1.0, target))
                           : core_->ceiling);
  dual_ = std::make_unique<DualBound>(*dual_core_);
  dual_has_target_ = have_cost_;
  if (!prices.empty()) dual_->set_prices(prices);
}

// Solves what pruning has left without a search, where bytes do not matter and
// tables stay small. True when nothing is left to find out.
bool Solver::eliminate_rest(const Network& pruned,
                            const std::vector<int>& variable) {
  if (!options_.passes.enabled(Pass::kElimination)) return false;
  for (const NetVariable& v : pruned.variables) {
    if (!v.segments.empty()) return false;
  }
  std::size_t choices = 0;
  for (const NetVariable& v : pruned.variables) choices += v.costs.size();
  if (static_cast<double>(choices) >
      kFewChoices * static_cast<double>(core_->unary.size())) {
    return false;
  }
  Network rest = pruned;
  reduce(rest, options_.passes, clock_);
  const Int128 below = have_cost_ ? cost_in_units() : kNoCost;
  Int128 least = kNoCost;
  if (!rest.infeasible) {
    const auto solved = clock_.time(Pass::kElimination, [&] {
      return eliminate_all(rest, kEliminationCap, spent_elsewhere_);
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
      take_network_choices(std::move(all));
    }
  }
  if (have_cost_) {
    raise_bound(std::min(least, below));
  } else {
    infeasible_ = true;
  }
  return true;
}

// Drops what cannot be part of a better assignment, and branches on the rest
// if that is small.
void Solver::start_branching() {
  const Int128 below = have_cost_ ? cost_in_units() : kNoCost;
  tried_branching_ = true;
  branched_below_ = below;
  branched_gap_ = dual_gap();
  std::vector<int> variable;
  Network root = network_.extract(variable);
  std::vector<double> prices;
  if (dual_ && dual_->best_bound() > -kInfinity) {
    dual_->restore_best();
    prices = dual_->best_prices();
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
  }
  if (!root.infeasible && eliminate_rest(root, variable)) return;
  std::size_t choices = 0;
  for (const NetVariable& v : root.variables) choices += v.costs.size();
  if (root.infeasible) {
    // Nothing is better than what is known.
    if (have_cost_) raise_bound(below);
    infeasible_ = !have_cost_;
  } else if (choices <= kBranchChoices) {
    if (branching_) spent_elsewhere_ += branching_->work();
    branching_variable_ = std::move(variable);
    branching_ = std::make_unique<BranchAndBound>(
        std::move(root), below, std::move(prices), options_.passes,
        options_.seed);
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
  if (!ready || (tried_branching_ &&
                 (!have_cost_ || cost_in_units() == branched_below_))) {
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
  // What the first thread does; with one thread, search keeps every other
  // round.
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
  std::vector<std::jthread> threads;
  for (std::size_t i = 1; search_on && i < workers_.size(); ++i) {
    threads.emplace_back(timed_search, i);
  }
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
    clock_.add(
        Pass::kBranchAndBound, 1,
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count());
  } else if (search_on) {
    timed_search(0);
  }
  threads.clear();
  for (const double seconds : took) {
    if (seconds > 0) clock_.add(Pass::kLocalSearch, 1, seconds);
  }
  ++rounds_;
}

// Threads have met: what they found is put together in a fixed order.
void Solver::gather() {
  for (const auto& worker : workers_) {
    if (worker->best().empty() || worker->best_cost() >= core_best_cost_)
      continue;
    core_best_cost_ = worker->best_cost();
    core_best_ = worker->best();
    take_core_choices(core_best_);
  }
  if (branching_) {
    if (branching_->improved() &&
        (!have_cost_ || branching_->best_cost() < cost_in_units())) {
      std::vector<int> all(network_.variables.size(), 0);
      for (std::size_t v = 0; v < branching_variable_.size(); ++v) {
        all[static_cast<std::size_t>(branching_variable_[v])] =
            branching_->choices()[v];
      }
      // The core numbers what is alive in the same order.
      core_best_ = branching_->choices();
      take_network_choices(std::move(all));
      core_best_cost_ = core_target();
    }
    if (have_cost_) branching_->lower(cost_in_units());
    if (branching_->done() && !have_cost_) {
      infeasible_ = true;
    } else if (have_cost_) {
      raise_bound(branching_->bound());
    }
  }
  if (dual_ && dual_->best_bound() > -kInfinity) {
    const Int128 bound = dual_core_->offset +
                         static_cast<Int128>(std::ceil(dual_->best_bound()));
    raise_bound(bound);
    prices_ = dual_->best_prices();
    decoded_ = dual_->decode();
  }
  work_ = spent_elsewhere_ + (dual_ ? dual_->work() : 0) +
          (branching_ ? branching_->work() : 0);
  for (const auto& worker : workers_) work_ += worker->work();
  if (options_.progress) {
    Progress progress;
    progress.seconds = seconds();
    if (have_cost_) progress.cost = cost_;
    if (bound_known_) progress.lower_bound = bound_;
    options_.progress(progress);
  }
}

void Solver::search() {
  Rng seeds(options_.seed);
  const int threads = std::max(1, options_.threads);
  for (int i = 0; i < threads; ++i) {
    workers_.push_back(std::make_unique<SearchWorker>(*core_, seeds.next()));
  }
  std::uint64_t work = kFirstRound;
  while (!proven() && !stop_.raised() && !out_of_work()) {
    if (options_.passes.enabled(Pass::kDualBound)) {
      if (!dual_ ? have_cost_ || rounds_ == 4
                 : have_cost_ && !dual_has_target_) {
        start_dual();
      }
    }
    if (branching_is_due()) start_branching();
    if (proven()) break;
    for (const auto& worker : workers_) {
      worker->guide({core_best_.empty() ? nullptr : &core_best_,
                     core_best_cost_, &decoded_,
                     prices_.empty() ? nullptr : &prices_, dual_settling()});
    }
    round(work);
    work = std::min(work + work / 4, kLongestRound);
    gather();
    const bool idle = !options_.passes.enabled(Pass::kLocalSearch) &&
                      (!dual_ || dual_->stalled()) &&
                      (!branching_ || branching_->done()) && rounds_ > 8;
    if (idle) break;
  }
}

Solution Solver::finish() {
  Solution solution;
  if (infeasible_) {
    solution.status = Status::kInfeasible;
  } else {
    if (bound_known_) {
      // Beyond exact doubles a bound is true up to rounding only.
      Int128 bound = bound_;
      if (!exact_ && have_cost_ && core_target() >= kMostExact) {
        bound -= (bound < 0 ? -bound : bound) >> 40;
      }
      solution.lower_bound = bound;
    }
    if (have_cost_) {
      solution.cost = cost_;
      solution.assignment = std::move(assignment_);
      solution.status =
          solution.lower_bound.has_value() && *solution.lower_bound >= cost_
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

std::string_view to_string(Status status) {
  switch (status) {
    case Status::kOptimal:
      return "optimal";
    case Status::kFeasible:
      return "feasible";
    case Status::kInfeasible:
      return "infeasible";
    case Status::kUnknown:
      return "unknown";
  }
  throw InternalError("a status outside its enumeration");
}

std::optional<double> Solution::gap() const {
  if (!cost.has_value() || !lower_bound.has_value()) return std::nullopt;
  const auto above = static_cast<double>(*cost - *lower_bound);
  if (above <= 0) return 0.0;
  return above / std::max(1.0, std::abs(static_cast<double>(*cost)));
}

Solution solve_plainly(const Problem& problem, const SolveOptions& options) {
  return Solver(problem, options).run();
}

Solution solve(const Problem& problem, const SolveOptions& options) {
  Solution solution = solve_plainly(problem, options);
  if (solution.status == Status::kInfeasible) {
    solution.clash = find_clash(problem, options);
    solution.seconds = std::chrono::duration<double>(
                           std::chrono::steady_clock::now() - options.start)
                           .count();
  }
  return solution;
}

}  // namespace shardprop::solver

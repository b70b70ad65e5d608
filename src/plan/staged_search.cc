#include "plan/staged_search.h"

#include "base/try.h"
#include "plan/stop.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

// A part of the time and work within which a space is set up and searched,
// counted from the beginning.
struct Stage {
  PlanSpace space;
  double set_up_by = 1;
  double until = 1;
  // Passed over where less than this has been spent by then: the named space
  // will be set up in time.
  double worthwhile_after = 0;
};

constexpr PlanSpace kReplicated{0};
constexpr PlanSpace kOneRun{1};
constexpr PlanSpace kTwoRuns{2};
constexpr PlanSpace kNamed{};

// What is left when setting up ends must do for the search and for the reasons.
constexpr double kSetUpBy = 0.8;

std::vector<Stage> stages_for(const DeviceMesh& mesh,
                              const PlanOptions& options) {
  // Where a recipe is followed, little is left open.
  if (options.recipe) return {{kNamed}};
  const auto dims =
      std::count_if(mesh.dims().begin(), mesh.dims().end(),
                    [](const MeshDim& dim) { return dim.size > 1; });
  if (dims < 2) return {{kNamed}};
  if (dims == 2) return {{kOneRun, 0.3, 0.45, 0.04}, {kNamed}};
  if (dims == 3) {
    return {{kOneRun, 0.3, 0.45},
            {kTwoRuns, 0.55, 0.65, 0.04},
            {kNamed, kSetUpBy, 1}};
  }
  return {{kOneRun, 0.3, 0.45}, {kTwoRuns, 0.6, 0.8}, {kNamed, kSetUpBy, 1}};
}

class StagedSearch {
 public:
  StagedSearch(const Graph& graph, const DeviceMesh& mesh,
               const Topology& topology, const OpLibrary& library,
               const PlanOptions& options)
      : graph_(graph),
        mesh_(mesh),
        topology_(topology),
        library_(library),
        options_(options) {}

  Result<StagedResult> run() {
    for (const Stage& stage : stages_for(mesh_, options_)) {
      if (seconds() < stage.worthwhile_after * options_.time_limit_seconds) {
        continue;
      }
      SP_CHECK(enter(stage));
      if (is_settled()) break;
    }
    if (!best_ || may_be_replicated()) SP_CHECK(enter_replicated());
    if (!best_ || (!best_->solution.assignment && is_refused())) {
      return fail(*std::move(failure_));
    }
    best_->failure = std::move(failure_);
    return std::move(*best_);
  }

 private:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         *options_.start)
        .count();
  }

  // Proven over the named space, one way or the other.
  bool is_settled() const {
    return (best_ && best_->space.is_named() &&
            best_->solution.status != PlanStatus::kUnknown &&
            best_->solution.status != PlanStatus::kFeasible) ||
           options_.stop.stop_requested();
  }

  // Whether it was neither time nor the caller that kept the named space from
  // being searched.
  bool is_refused() const {
    return failure_ && failure_->code != ErrorCode::kStopped;
  }

  // Whether time or work ran out before the search found a plan, or got near
  // the best one.
  bool may_be_replicated() const {
    const PlanSolution& found = best_->solution;
    if (!found.assignment) return found.status == PlanStatus::kUnknown;
    // A recipe asks for other plans.
    if (options_.recipe) return false;
    const auto cost = static_cast<double>(found.evaluation.objective);
    return static_cast<double>(found.lower_bound) < (1 - kNear) * cost;
  }

  // What is left of the first `share` of time and work.
  SolveLimits limits(double share) const {
    SolveLimits out{options_.time_limit_seconds * share - seconds(), {}};
    if (options_.work_limit) {
      const auto most = static_cast<std::uint64_t>(
          static_cast<double>(*options_.work_limit) * share);
      out.work = most - std::min(work_, most);
    }
    return out;
  }
  SetUp set_up(const Stage& stage) const {
    return {stage.space, deadline(*options_.start, options_.time_limit_seconds *
                                                       stage.set_up_by)};
  }

  Result<void> enter(const Stage& stage) {
    tell(PlanProgress::Phase::kSetUp);
    Result<PlanProblem> problem = PlanProblem::create(
        graph_, mesh_, topology_, library_, options_, set_up(stage));
    if (!problem) return pass_over(stage, std::move(problem).error());
    tell(PlanProgress::Phase::kSearch);
    SolveLimits within = limits(stage.until);
    within.break_ties = stage.space.is_named();
    PlanSolution solution = solve_plan(*problem, within);
    work_ += solution.work;
    if (solution.failure && !solution.assignment) {
      return pass_over(stage, *std::move(solution.failure));
    }
    take({*std::move(problem), std::move(solution), stage.space});
    return {};
  }

  // Costs next to nothing, so that it may take longer than there is.
  Result<void> enter_replicated() {
    if (options_.stop.stop_requested()) return {};
    auto problem = PlanProblem::create(graph_, mesh_, topology_, library_,
                                       options_, {kReplicated, {}});
    if (!problem) {
      // Pins, say, that nothing replicated obeys.
      if (problem.error().code == ErrorCode::kOutOfMemory) {
        note(std::move(problem).error());
      }
      return {};
    }
    PlanSolution solution =
        solve_plan(*problem, {kReplicatedSeconds, 0, false});
    if (solution.failure && !solution.assignment) note(*solution.failure);
    if (best_ && !solution.assignment) return {};
    if (!best_ || !best_->solution.assignment) {
      take({*std::move(problem), std::move(solution), kReplicated});
      return {};
    }
    // It is a plan of the space that was searched, whose bound it keeps.
    const std::int64_t cost = solution.evaluation.objective;
    if (cost >= best_->solution.evaluation.objective) return {};
    solution.lower_bound = std::min(best_->solution.lower_bound, cost);
    solution.status = PlanStatus::kFeasible;
    best_ = {*std::move(problem), std::move(solution), best_->space};
    return {};
  }

  // Where a space cannot be set up others may be. What the named one says of
  // the request, a pin or an operator without a strategy, is an error; running
  // out of time, memory or countable ways is not while there is another answer.
  Result<void> pass_over(const Stage& stage, Error error) {
    const bool is_limit = error.code == ErrorCode::kStopped ||
                          error.code == ErrorCode::kProblemTooLarge ||
                          error.code == ErrorCode::kRedistributeMeshTooLarge ||
                          error.code == ErrorCode::kOutOfMemory;
    if (stage.space.is_named() && !is_limit) return fail(std::move(error));
    note(std::move(error));
    if (options_.stop.stop_requested() && !best_) return fail(*failure_);
    return {};
  }

  // That time ran out says less than what was refused before.
  void note(Error error) {
    if (error.code != ErrorCode::kStopped || !is_refused()) {
      failure_ = std::move(error);
    }
  }

  void take(StagedResult next) {
    // Once the named space is searched it does not matter what kept smaller
    // ones from it.
    if (next.space.is_named()) failure_ = next.solution.failure;
    // Of a part of the space nothing is proven for the whole.
    PlanStatus& status = next.solution.status;
    if (!next.space.is_named() && status == PlanStatus::kOptimal) {
      status = PlanStatus::kFeasible;
    }
    if (!next.space.is_named() && status == PlanStatus::kInfeasible) {
      status = PlanStatus::kUnknown;
      next.solution.clash.clear();
    }
    if (!next.space.is_named() && !next.solution.assignment) {
      next.solution.lower_bound = 0;
    }
    if (!best_) {
      best_ = std::move(next);
      return;
    }
    const bool better =
        next.solution.assignment && (!best_->solution.assignment ||
                                     next.solution.evaluation.objective <=
                                         best_->solution.evaluation.objective);
    const bool proof = next.solution.status == PlanStatus::kInfeasible &&
                       !best_->solution.assignment;
    if (better || proof ||
        (!best_->solution.assignment && next.space.is_named())) {
      best_ = std::move(next);
      return;
    }
    // What no plan of the larger space costs less than, none here does.
    if (!best_->solution.assignment || next.solution.lower_bound == 0) return;
    best_->space = next.space;
    best_->solution.lower_bound = std::min(
        next.solution.lower_bound, best_->solution.evaluation.objective);
    const bool proven =
        next.space.is_named() &&
        best_->solution.lower_bound == best_->solution.evaluation.objective;
    best_->solution.status =
        proven ? PlanStatus::kOptimal : PlanStatus::kFeasible;
  }

  void tell(PlanProgress::Phase phase) const {
    if (!options_.progress) return;
    PlanProgress progress{.phase = phase, .seconds = seconds()};
    if (best_ && best_->solution.assignment) {
      progress.objective = best_->solution.evaluation.objective;
    }
    options_.progress(progress);
  }

  static constexpr double kReplicatedSeconds = 1;
  static constexpr double kNear = 0.05;  // a gap

  const Graph& graph_;
  const DeviceMesh& mesh_;
  const Topology& topology_;
  const OpLibrary& library_;
  const PlanOptions& options_;
  std::optional<StagedResult> best_;
  std::optional<Error> failure_;
  std::uint64_t work_ = 0;
};

}  // namespace

Result<StagedResult> search_in_stages(const Graph& graph,
                                      const DeviceMesh& mesh,
                                      const Topology& topology,
                                      const OpLibrary& library,
                                      const PlanOptions& options) {
  return StagedSearch(graph, mesh, topology, library, options).run();
}

}  // namespace shardprop

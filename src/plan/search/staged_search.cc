#include "plan/search/staged_search.h"

#include "base/guard.h"
#include "base/index.h"
#include "base/try.h"
#include "plan/problem/plan_budget.h"
#include "plan/search/best_stage.h"
#include "plan/search/parts/free_layers_bound.h"
#include "plan/search/parts/search_stages.h"
#include "plan/search/procedures.h"
#include "plan/search/solve_plan.h"
#include "plan/tuning.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

constexpr PlanSpace kReplicated{0};

constexpr const char* kSmallerSpaces = "plans that join mesh dims";
constexpr const char* kFreeLayers = "the bound of plans with free layers";

class StagedSearch {
 public:
  StagedSearch(const Graph& graph, const DeviceMesh& mesh,
               const Topology& topology, const OpLibrary& library,
               const PlanOptions& options, const Budget& budget)
      : graph_(graph),
        mesh_(mesh),
        topology_(topology),
        library_(library),
        options_(options),
        budget_(budget),
        share_if_limit_binds_(options.share_if_limit_binds),
        procedures_(no_runs(options)) {}

  Result<StagedResult> run() {
    SP_ASSIGN(const std::vector<Stage> stages, search_stages(mesh_, options_));
    for (const Stage& stage : stages) {
      if (budget_.share_of_time_spent() < stage.shares.worthwhile_after ||
          (stage.without_plan && best_.has_plan())) {
        continue;
      }
      SP_CHECK(enter(stage));
      if (is_settled() || is_interrupted()) break;
    }
    if (!best_ || may_be_replicated()) {
      SP_CHECK(timed_run(procedures_, PlanProcedure::kReplicatedPlan,
                         [&] { return enter_replicated(); }));
    }
    if (!best_ || (!best_->solution.assignment && is_refused())) {
      return fail(*std::move(failure_));
    }
    best_->solution.bound_without_limit = bound_without_limit_;
    best_->solution.work = budget_.work_spent();
    if (free_bound_) best_->free_lower_bound = free_bound_;
    if (free_bound_ && best_.has_plan()) {
      best_->free_lower_bound =
          std::min(*free_bound_, best_->solution.evaluation.objective);
    }
    best_->ran_out = ran_out();
    best_->failure = std::move(failure_);
    best_->recipes = std::move(recipes_);
    best_->left_out = std::move(left_out_);
    best_->procedures = std::move(procedures_);
    best_->start = std::move(start_);
    return std::move(best_).result();
  }

 private:
  // Returns whether there is a proof for the named space.
  bool is_settled() const {
    return best_ && best_->space.is_named() &&
           best_->solution.status != PlanStatus::kUnknown &&
           best_->solution.status != PlanStatus::kFeasible;
  }

  // Returns whether a request ends the search, and records that it did.
  bool is_interrupted() {
    if (!budget_.is_requested_to_stop()) return false;
    ended_by_ = RanOut::kInterrupted;
    return true;
  }

  // Returns the limit that ended the search before a proof.
  RanOut ran_out() const {
    const PlanStatus status = best_->solution.status;
    if (status == PlanStatus::kOptimal || status == PlanStatus::kInfeasible) {
      return RanOut::kNothing;
    }
    if (failure_ && failure_->code != ErrorCode::kStopped) {
      return failure_->code == ErrorCode::kOutOfMemory ? RanOut::kMemory
                                                       : RanOut::kSize;
    }
    const std::int64_t cost = best_->solution.evaluation.objective;
    const auto gap = static_cast<double>(cost - best_->solution.lower_bound);
    if (ended_by_ != RanOut::kInterrupted && best_->space.is_named() &&
        best_->solution.assignment &&
        gap <= options_.gap * static_cast<double>(cost)) {
      return RanOut::kGap;
    }
    return ended_by_;
  }

  // Returns whether an error other than time or a request to stop kept the
  // named space from being searched.
  bool is_refused() const {
    return failure_ && failure_->code != ErrorCode::kStopped;
  }

  // Returns whether time or work ran out before the search found a plan, or
  // found one near the optimum.
  bool may_be_replicated() const {
    const PlanSolution& found = best_->solution;
    if (!found.assignment) return found.status == PlanStatus::kUnknown;
    // A recipe asks for plans other than all replicated.
    if (options_.recipe) return false;
    const auto cost = static_cast<double>(found.evaluation.objective);
    return static_cast<double>(found.lower_bound) <
           (1 - tuning::kNearOptimumGap) * cost;
  }

  Result<void> enter(const Stage& stage) {
    tell(PlanProgress::Phase::kSetUp);
    const Budget for_set_up = budget_.until(stage.shares.set_up_by);
    Result<PlanProblem> problem =
        timed_run(procedures_, PlanProcedure::kSetUp, [&] {
          return PlanProblem::create(graph_, mesh_, topology_, library_,
                                     options_, {stage.space, for_set_up});
        });
    if (!problem) {
      // A budget that has stopped once stays stopped.
      const auto cause = for_set_up.cut_off();
      if (problem.error().code == ErrorCode::kStopped && cause) {
        ended_by_ = ran_out_of(*cause);
      }
      return pass_over(stage, std::move(problem).error());
    }
    tell(PlanProgress::Phase::kSearch);
    PlanSolution solution =
        solve_plan(*problem, budget_.until(stage.shares.until),
                   {.break_ties = stage.space.is_named(),
                    .share_if_limit_binds = share_if_limit_binds_});
    budget_.charge(solution.work);
    note_limit(solution);
    add_runs(procedures_, solution.procedures);
    ended_by_ = solution.ran_out;
    note_recipes(stage.space, solution.recipes);
    if (solution.start) start_ = std::move(solution.start);
    left_out_.insert(left_out_.end(), solution.left_out.begin(),
                     solution.left_out.end());
    if (solution.failure && !solution.assignment) {
      return pass_over(stage, *std::move(solution.failure));
    }
    if (stage.space.is_named()) bound_free_layers(*problem, solution);
    take({*std::move(problem), std::move(solution), stage.space});
    return {};
  }

  // Bounds the plans of the named space in which equal layers choose alone.
  void bound_free_layers(const PlanProblem& problem, PlanSolution& solution) {
    if (!is_on(PlanProcedure::kFreeLayersBound, options_) ||
        !can_bound_free_layers(problem, solution) || budget_.is_stopped()) {
      return;
    }
    constexpr PlanProcedure kHere = PlanProcedure::kFreeLayersBound;
    auto bound = timed_run(procedures_, kHere, [&] {
      return guarded([&]() -> Result<FreeLayersBound> {
        return free_layers_bound(
            problem, solution,
            budget_.within({.work = tuning::kFreeLayersBoundWork}));
      });
    });
    if (bound) {
      free_bound_ = bound->nanoseconds;
      if (bound->learned) solution.warm_start = std::move(bound->learned);
      budget_.charge(bound->work);
      procedures_[index(kHere)].work += bound->work;
    }
    const std::optional<Error> failure =
        bound ? bound->failure : std::optional(bound.error());
    if (failure) left_out_.push_back({kFreeLayers, *failure});
  }

  // The first stage in which the limit binds or no plan fits narrows the budget.
  void note_limit(const PlanSolution& solution) {
    bound_without_limit_ = solution.bound_without_limit;
    const bool lacks_memory = options_.memory_limit && !solution.assignment;
    if (!bound_without_limit_ && !lacks_memory) {
      // A search that ended early may have missed a cheaper plan above the limit.
      if (options_.memory_limit && !solution.is_limit_tested) {
        bound_without_limit_ = solution.lower_bound;
      }
      return;
    }
    if (share_if_limit_binds_ == 1) return;
    budget_ = budget_.narrowed(share_if_limit_binds_);
    share_if_limit_binds_ = 1;
  }

  // Keeps the best plan of each recipe over all stages. A proof holds for the
  // named space only.
  void note_recipes(const PlanSpace& space, std::vector<PlanRecipe>& found) {
    for (PlanRecipe& recipe : found) {
      if (!space.is_named()) {
        recipe.status = recipe.objective_nanoseconds ? PlanStatus::kFeasible
                                                     : PlanStatus::kUnknown;
      }
      const auto known = std::find_if(
          recipes_.begin(), recipes_.end(),
          [&](const PlanRecipe& other) { return other.name == recipe.name; });
      if (known == recipes_.end()) {
        recipes_.push_back(std::move(recipe));
      } else if (!known->objective_nanoseconds ||
                 (recipe.objective_nanoseconds &&
                  *recipe.objective_nanoseconds <=
                      *known->objective_nanoseconds)) {
        *known = std::move(recipe);
      }
    }
  }

  // The all-replicated plan takes almost no time, so it may exceed the limit.
  Result<void> enter_replicated() {
    if (is_interrupted()) return {};
    auto problem =
        PlanProblem::create(graph_, mesh_, topology_, library_, options_,
                            {kReplicated, budget_.renewed({})});
    if (!problem) {
      // Some requests, pins for example, exclude replicated tensors.
      if (problem.error().code == ErrorCode::kOutOfMemory) {
        note(std::move(problem).error());
      }
      return {};
    }
    PlanSolution solution =
        solve_plan(*problem,
                   budget_.renewed(
                       step_limits(budget_, tuning::kReplicatedPlanSeconds, 0)),
                   {.break_ties = false});
    left_out_.insert(left_out_.end(), solution.left_out.begin(),
                     solution.left_out.end());
    if (solution.failure && !solution.assignment) note(*solution.failure);
    if (best_ && !solution.assignment) return {};
    if (!best_.has_plan()) {
      take({*std::move(problem), std::move(solution), kReplicated});
    } else {
      if (solution.failure) {
        left_out_.push_back(
            {"plans with replicated tensors", *solution.failure});
      }
      best_.take_member({*std::move(problem), std::move(solution), {}});
    }
    return {};
  }

  // If one space cannot be built, others may be. An error of the named space
  // about the request is returned, such as one about a pin or an operator
  // without a strategy. Running out of time, memory or countable layouts is not
  // an error while there is another answer.
  Result<void> pass_over(const Stage& stage, Error error) {
    const bool is_limit = error.code == ErrorCode::kStopped ||
                          error.code == ErrorCode::kProblemTooLarge ||
                          error.code == ErrorCode::kRedistributeMeshTooLarge ||
                          error.code == ErrorCode::kOutOfMemory;
    if (stage.space.is_named() && !is_limit) return fail(std::move(error));
    note(std::move(error));
    if (budget_.is_requested_to_stop() && !best_) return fail(*failure_);
    return {};
  }

  // Keeps the earlier error: a rejected input explains more than a timeout.
  void note(Error error) {
    if (error.code == ErrorCode::kStopped && is_refused()) return;
    if (is_refused() && failure_->code != error.code) {
      left_out_.push_back({kSmallerSpaces, *failure_});
    }
    failure_ = std::move(error);
  }

  void take(StagedResult next) {
    // Once the named space is searched, the search lacks no more than the plans
    // that smaller ones had to offer.
    const std::optional<Error>& lacks =
        next.space.is_named() ? failure_ : next.solution.failure;
    if (lacks && lacks->code != ErrorCode::kStopped) {
      left_out_.push_back({kSmallerSpaces, *lacks});
    }
    if (next.space.is_named()) failure_ = next.solution.failure;
    best_.take(std::move(next));
  }

  void tell(PlanProgress::Phase phase) const {
    if (!options_.progress) return;
    PlanProgress progress{.phase = phase, .seconds = budget_.seconds_spent()};
    if (best_.has_plan()) {
      progress.objective = best_->solution.evaluation.objective;
    }
    options_.progress(progress);
  }

  const Graph& graph_;
  const DeviceMesh& mesh_;
  const Topology& topology_;
  const OpLibrary& library_;
  const PlanOptions& options_;
  Budget budget_;
  double share_if_limit_binds_;  // 1 once the budget is narrowed
  std::optional<std::int64_t> bound_without_limit_;  // of the last stage
  std::optional<std::int64_t> free_bound_;           // of free_layers_bound()
  BestStage best_;
  std::optional<Error> failure_;
  // The limit that ended the last stage.
  RanOut ended_by_ = RanOut::kNothing;
  std::vector<PlanRecipe> recipes_;
  std::vector<PlanSolution::LeftOut> left_out_;
  std::vector<Procedure> procedures_;
  std::optional<EarlierPlanNote> start_;
};

}  // namespace

Result<StagedResult> search_in_stages(const Graph& graph,
                                      const DeviceMesh& mesh,
                                      const Topology& topology,
                                      const OpLibrary& library,
                                      const PlanOptions& options,
                                      const Budget& budget) {
  return StagedSearch(graph, mesh, topology, library, options, budget).run();
}

}  // namespace shardprop

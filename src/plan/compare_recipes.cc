#include "plan/compare_recipes.h"

#include "base/try.h"
#include "plan/assemble_plan.h"
#include "plan/stop.h"

#include <shardprop/plan/make_plan.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

constexpr std::string_view kOptimum = "optimum";
// The plans that recipes lay out themselves are made for graphs of so many
// operators whether there is time or not: they take milliseconds.
constexpr std::size_t kFewOperators = 2000;

class Comparison {
 public:
  Comparison(const Graph& graph, const DeviceMesh& mesh,
             const Topology& topology, const OpLibrary& library,
             PlanOptions options, double seconds, Plan& plan)
      : graph_(graph),
        mesh_(mesh),
        topology_(topology),
        library_(library),
        options_(std::move(options)),
        seconds_(seconds),
        plan_(plan) {
    options_.compare = false;
    options_.progress = nullptr;
  }

  Result<void> run(std::span<const Recipe> recipes) {
    std::size_t left = recipes.size();
    if (options_.recipe) SP_CHECK(price(std::nullopt, ++left));
    for (const Recipe& recipe : recipes) SP_CHECK(price(recipe, left--));
    return {};
  }

 private:
  double seconds_left() const {
    return seconds_ - std::chrono::duration<double>(
                          std::chrono::steady_clock::now() - start_)
                          .count();
  }

  // Its share of the time, `left` being still to be priced with it.
  Result<void> price(const std::optional<Recipe>& recipe, std::size_t left) {
    PlanRecipe out;
    out.name = recipe ? to_string(*recipe) : std::string(kOptimum);
    const double share = seconds_left() / static_cast<double>(left);
    PlanOptions own = options_;
    own.recipe = recipe;
    if (share > 0 && !options_.stop.stop_requested()) {
      SP_CHECK(price_within(share, own, out));
    }
    if (out.status == PlanStatus::kUnknown) price_constructed(own, out);
    plan_.recipes.push_back(std::move(out));
    return {};
  }

  Result<void> price_within(double seconds, const PlanOptions& options,
                            PlanRecipe& out) {
    const auto start = std::chrono::steady_clock::now();
    auto problem = PlanProblem::create(graph_, mesh_, topology_, library_,
                                       options, {{}, deadline(start, seconds)});
    if (!problem) {
      // Unknown, if there was no time to set it up.
      if (problem.error().code == ErrorCode::kStopped) return {};
      return fail(std::move(problem).error());
    }
    const double setup =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
    const PlanSolution solution =
        solve_plan(*problem, {seconds - setup, options.work_limit, false});
    out.status = solution.status;
    out.peak_bytes = solution.evaluation.peak_bytes;
    if (solution.assignment) take(*problem, solution, out);
    return {};
  }

  // As the lone command does where the search found no plan: what the recipe
  // says, all else replicated.
  void price_constructed(const PlanOptions& options, PlanRecipe& out) {
    if (options_.stop.stop_requested()) return;
    const auto problem = PlanProblem::create(
        graph_, mesh_, topology_, library_, options,
        {PlanSpace{0}, graph_.nodes().size() <= kFewOperators
                           ? std::nullopt
                           : deadline(start_, seconds_)});
    if (!problem) return;
    const PlanSolution solution = solve_plan(*problem, {1, 0, false});
    if (!solution.assignment) return;
    out.status = PlanStatus::kFeasible;
    out.peak_bytes = solution.evaluation.peak_bytes;
    take(*problem, solution, out);
  }

  void take(const PlanProblem& problem, const PlanSolution& solution,
            PlanRecipe& out) {
    out.objective_nanoseconds = solution.evaluation.objective;
    if (!options_.recipe) take_if_better(problem, solution);
  }

  // The named space holds all that recipes choose from, a smaller one need not.
  void take_if_better(const PlanProblem& problem,
                      const PlanSolution& solution) {
    if (plan_.has_plan() &&
        *plan_.objective_nanoseconds <= solution.evaluation.objective) {
      return;
    }
    if (plan_.status == PlanStatus::kInfeasible) return;
    Plan better = assemble_plan(problem, solution);
    better.options = std::move(plan_.options);
    better.recipes = std::move(plan_.recipes);
    better.space = plan_.space;
    better.ran_out = plan_.ran_out;
    better.lower_bound_nanoseconds =
        std::min(plan_.lower_bound_nanoseconds, *better.objective_nanoseconds);
    better.status = PlanStatus::kFeasible;
    // It lies outside a smaller space whose bound it beats: that says nothing.
    if (!plan_.space.is_named() &&
        *better.objective_nanoseconds < plan_.lower_bound_nanoseconds) {
      better.space = {};
      better.lower_bound_nanoseconds = 0;
    }
    plan_ = std::move(better);
  }

  const Graph& graph_;
  const DeviceMesh& mesh_;
  const Topology& topology_;
  const OpLibrary& library_;
  PlanOptions options_;
  double seconds_;
  std::chrono::steady_clock::time_point start_ =
      std::chrono::steady_clock::now();
  Plan& plan_;
};

}  // namespace

Result<void> compare_recipes(const Graph& graph, const DeviceMesh& mesh,
                             const Topology& topology, const OpLibrary& library,
                             const PlanOptions& options,
                             std::span<const Recipe> recipes, double seconds,
                             Plan& plan) {
  return Comparison(graph, mesh, topology, library, options, seconds, plan)
      .run(recipes);
}

}  // namespace shardprop

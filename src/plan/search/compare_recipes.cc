#include "plan/search/compare_recipes.h"

#include "base/try.h"
#include "plan/problem/constraints/recipe_layouts.h"
#include "plan/problem/plan_budget.h"
#include "plan/search/parts/restricted_problem.h"
#include "plan/search/solve_plan.h"
#include "plan/tuning.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace shardprop {
namespace {

constexpr std::string_view kOptimum = "optimum";

bool is_open(const PlanRecipe& recipe) {
  return recipe.status == PlanStatus::kFeasible ||
         recipe.status == PlanStatus::kUnknown;
}

PlanRecipe priced(std::string name, const PlanSolution& solution) {
  PlanRecipe out{std::move(name), solution.status, std::nullopt,
                 solution.evaluation.peak_bytes};
  if (solution.assignment) {
    out.objective_nanoseconds = solution.evaluation.objective;
  }
  return out;
}

class RecipeComparison {
 public:
  RecipeComparison(const Graph& graph, const DeviceMesh& mesh,
                   const Topology& topology, const OpLibrary& library,
                   const PlanOptions& options, const Budget& budget,
                   const StagedResult& found,
                   std::vector<PlanSolution::LeftOut>& left_out)
      : graph_(graph),
        mesh_(mesh),
        topology_(topology),
        library_(library),
        options_(options),
        budget_(budget),
        found_(found),
        left_out_(left_out) {}

  Result<std::vector<PlanRecipe>> run() {
    if (options_.recipe) {
      SP_CHECK(search_freely());
    } else {
      recipes_ = found_.recipes;
    }
    const auto known = found_.problem.known_recipes();
    std::vector<PlanRecipe> out;
    if (options_.recipe) out.push_back(optimum_);
    std::size_t left = known.size();
    for (const Recipe& recipe : known) {
      PlanRecipe row = met(to_string(recipe));
      if (is_open(row)) look_closer(recipe, left, row);
      --left;
      out.push_back(std::move(row));
    }
    for (PlanRecipe& row : out) {
      if (row.status == PlanStatus::kUnknown) construct(row);
    }
    return out;
  }

 private:
  static std::string part_of(const PlanRecipe& row) {
    return row.name == kOptimum ? "the optimum" : "the recipe " + row.name;
  }

  // Returns the result that the search found for a recipe.
  PlanRecipe met(const std::string& name) const {
    if (options_.recipe) {
      const auto own = on_mesh(*options_.recipe, mesh_);
      if (own && to_string(*own) == name) return priced(name, found_.solution);
    }
    const auto row =
        std::find_if(recipes_.begin(), recipes_.end(),
                     [&](const PlanRecipe& of) { return of.name == name; });
    if (row != recipes_.end()) return *row;
    return {name, PlanStatus::kUnknown, std::nullopt, 0};
  }

  // Searches for the optimum and the recipes next to a plan that follows one of
  // them.
  Result<void> search_freely() {
    optimum_.name = kOptimum;
    if (budget_.is_cut_off()) return {};
    PlanOptions free = options_;
    free.recipe.reset();
    free.progress = nullptr;
    SP_ASSIGN(StagedResult found,
              search_in_stages(graph_, mesh_, topology_, library_, free,
                               budget_.rest()));
    if (found.failure) left_out_.push_back({"the optimum", *found.failure});
    left_out_.insert(left_out_.end(), found.left_out.begin(),
                     found.left_out.end());
    optimum_ = priced(optimum_.name, found.solution);
    recipes_ = std::move(found.recipes);
    return {};
  }

  // Searches the recipe's part of the space to its end. The remaining time is
  // shared equally by `left` recipes.
  void look_closer(const Recipe& recipe, std::size_t left, PlanRecipe& row) {
    if (found_.solution.status != PlanStatus::kOptimal || options_.recipe ||
        budget_.is_cut_off()) {
      return;
    }
    const Budget budget = budget_.share(1 / static_cast<double>(left), 1);
    const RestrictedProblem part(found_.problem,
                                 following(found_.problem, recipe));
    const PlanSolution solution = solve_plan(
        part.problem(), budget,
        {.break_ties = false, .first_plans = false, .explains = false});
    add_left_out(part_of(row), solution, left_out_);
    const PlanRecipe closer = priced(row.name, solution);
    if (!row.objective_nanoseconds ||
        (closer.objective_nanoseconds &&
         *closer.objective_nanoseconds <= *row.objective_nanoseconds)) {
      row = closer;
    }
  }

  // Prices the plan that the recipe lays out itself. Planning with the recipe
  // alone does so, too, if its search finds no plan.
  void construct(PlanRecipe& row) {
    if (budget_.is_requested_to_stop()) return;
    PlanOptions own = options_;
    own.progress = nullptr;
    own.recipe.reset();
    if (row.name != kOptimum) {
      auto recipe = Recipe::parse(row.name);
      if (!recipe) return;
      own.recipe = *std::move(recipe);
    }
    const auto problem = PlanProblem::create(
        graph_, mesh_, topology_, library_, own,
        {PlanSpace{0}, graph_.nodes().size() <= tuning::kMostOperatorsOfLatePlan
                           ? budget_.renewed({})
                           : budget_});
    if (!problem) {
      // Some requests, pins for example, exclude a recipe.
      if (problem.error().code == ErrorCode::kOutOfMemory) {
        left_out_.push_back({part_of(row), problem.error()});
      }
      return;
    }
    const PlanSolution solution =
        solve_plan(*problem,
                   budget_.renewed(step_limits(
                       budget_, tuning::kConstructedPlanSeconds, 0)),
                   {.break_ties = false});
    add_left_out(part_of(row), solution, left_out_);
    if (!solution.assignment) return;
    row = priced(row.name, solution);
    row.status = PlanStatus::kFeasible;
  }

  const Graph& graph_;
  const DeviceMesh& mesh_;
  const Topology& topology_;
  const OpLibrary& library_;
  const PlanOptions& options_;
  const Budget& budget_;
  const StagedResult& found_;
  std::vector<PlanSolution::LeftOut>& left_out_;
  PlanRecipe optimum_;
  std::vector<PlanRecipe> recipes_;  // found by a search
};

}  // namespace

Result<std::vector<PlanRecipe>> compare_recipes(
    const Graph& graph, const DeviceMesh& mesh, const Topology& topology,
    const OpLibrary& library, const PlanOptions& options, const Budget& budget,
    const StagedResult& found, std::vector<PlanSolution::LeftOut>& left_out) {
  return RecipeComparison(graph, mesh, topology, library, options, budget,
                          found, left_out)
      .run();
}

}  // namespace shardprop

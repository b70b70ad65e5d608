#include <shardprop/plan/make_plan.h>

#include "base/guard.h"
#include "base/try.h"
#include "plan/compare_recipes.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace shardprop {
namespace {

// For one question whether there is a plan without some pin: table entries to
// touch, and seconds.
constexpr std::uint64_t kWorkPerQuestion = 400'000'000;
constexpr double kSecondsPerQuestion = 10;
// Of the time, where recipes are to be priced, too.
constexpr double kShareBesideRecipes = 0.5;

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start_)
        .count();
  }

 private:
  std::chrono::steady_clock::time_point start_ =
      std::chrono::steady_clock::now();
};

// Leaves of the pins those without which there would be a plan, and makes the
// clash that of what is left. Infeasible as all pins together are.
class Blame {
 public:
  // `watch` runs since the whole was begun; setting up took `setup` of it.
  Blame(const Graph& graph, const DeviceMesh& mesh, const Topology& topology,
        const OpLibrary& library, PlanOptions options, const Stopwatch& watch,
        double setup)
      : graph_(graph),
        mesh_(mesh),
        topology_(topology),
        library_(library),
        options_(std::move(options)),
        watch_(watch),
        setup_(setup) {
    options_.work_limit = std::min(
        options_.work_limit.value_or(kWorkPerQuestion), kWorkPerQuestion);
    options_.progress = nullptr;
  }

  Result<void> run(PlanSolution& solution) {
    for (std::size_t i = 0; i < options_.pins.size();) {
      const double left =
          options_.time_limit_seconds - watch_.seconds() - setup_;
      if (left <= 0 || options_.stop.stop_requested()) {
        unsure_ = true;
        break;
      }
      PlanOptions fewer = options_;
      fewer.pins.erase(fewer.pins.begin() + static_cast<std::ptrdiff_t>(i));
      auto problem =
          PlanProblem::create(graph_, mesh_, topology_, library_, fewer);
      if (!problem) {
        if (!options_.stop.stop_requested()) {
          return fail(std::move(problem).error());
        }
        unsure_ = true;
        break;
      }
      PlanSolution without =
          solve_plan(*problem, std::min(left, kSecondsPerQuestion));
      if (without.status == PlanStatus::kInfeasible) {
        options_ = std::move(fewer);
        solution = std::move(without);
        continue;
      }
      unsure_ = unsure_ || !without.assignment;
      ++i;
    }
    solution.clash_irreducible = solution.clash_irreducible && !unsure_;
    return {};
  }

  const std::vector<Pin>& pins() const { return options_.pins; }

 private:
  const Graph& graph_;
  const DeviceMesh& mesh_;
  const Topology& topology_;
  const OpLibrary& library_;
  PlanOptions options_;
  const Stopwatch& watch_;
  double setup_;
  bool unsure_ = false;
};

Result<Plan> plan_for(const Graph& graph, const DeviceMesh& mesh,
                      const Topology& topology, const OpLibrary& library,
                      const PlanOptions& options) {
  const Stopwatch watch;
  PlanOptions own = options;
  const auto tell = [&](PlanProgress progress) {
    progress.seconds = watch.seconds();
    if (options.progress) options.progress(progress);
  };
  if (options.progress) own.progress = tell;
  tell({.phase = PlanProgress::Phase::kSetUp});
  SP_ASSIGN(const PlanProblem problem,
            PlanProblem::create(graph, mesh, topology, library, own));
  const double setup = watch.seconds();
  tell({.phase = PlanProgress::Phase::kSearch});
  // Recipes are priced in what is left, which is a good part.
  const double search = (options.time_limit_seconds - setup) *
                        (options.compare ? kShareBesideRecipes : 1);
  PlanSolution solution = solve_plan(problem, search);
  if (solution.failure && !solution.assignment) {
    return fail(*std::move(solution.failure));
  }
  std::vector<std::string> pins;
  if (solution.status == PlanStatus::kInfeasible) {
    Blame blame(graph, mesh, topology, library, options, watch, setup);
    SP_CHECK(blame.run(solution));
    for (const Pin& pin : blame.pins()) pins.push_back(to_string(pin));
  }
  PlanProgress last{.phase = PlanProgress::Phase::kReport};
  if (solution.assignment) last.objective = solution.evaluation.objective;
  last.lower_bound = solution.lower_bound;
  tell(last);
  Plan plan = assemble_plan(problem, solution);
  plan.clash.pins = std::move(pins);
  if (options.compare) {
    SP_CHECK(compare_recipes(
        graph, mesh, topology, library, options, problem.known_recipes(),
        options.time_limit_seconds - watch.seconds(), plan));
  }
  plan.solve_seconds = watch.seconds();
  return plan;
}

}  // namespace

Result<Plan> make_plan(const Graph& graph, const DeviceMesh& mesh,
                       const Topology& topology, const OpLibrary& library,
                       const PlanOptions& options) {
  return guarded(
      [&] { return plan_for(graph, mesh, topology, library, options); });
}

}  // namespace shardprop

#include <shardprop/plan/make_plan.h>

#include "base/try.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace shardprop {
namespace {

// For one question whether there is a plan without some pin: table entries to
// touch, and seconds.
constexpr std::int64_t kWorkPerQuestion = 400'000'000;
constexpr double kSecondsPerQuestion = 10;

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
        const OpLibrary& library, PlanOptions options,
        const Stopwatch& watch, double setup)
      : graph_(graph),
        mesh_(mesh),
        topology_(topology),
        library_(library),
        options_(std::move(options)),
        watch_(watch),
        setup_(setup) {
    options_.work_limit = std::min(
        options_.work_limit.value_or(kWorkPerQuestion), kWorkPerQuestion);
  }

  Result<void> run(PlanSolution& solution) {
    for (std::size_t i = 0; i < options_.pins.size();) {
      const double left =
          options_.time_limit_seconds - watch_.seconds() - setup_;
      if (left <= 0) {
        unsure_ = true;
        break;
      }
      PlanOptions fewer = options_;
      fewer.pins.erase(fewer.pins.begin() + static_cast<std::ptrdiff_t>(i));
      SP_ASSIGN(const PlanProblem problem,
                PlanProblem::create(graph_, mesh_, topology_, library_,
                                    fewer));
      PlanSolution without =
          solve_plan(problem, std::min(left, kSecondsPerQuestion));
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

}  // namespace

Result<Plan> make_plan(const Graph& graph, const DeviceMesh& mesh,
                       const Topology& topology, const OpLibrary& library, const PlanOptions& options) {
  const Stopwatch watch;
  SP_ASSIGN(
      const PlanProblem problem,
      PlanProblem::create(graph, mesh, topology, library, options));
  const double setup = watch.seconds();
  PlanSolution solution =
      solve_plan(problem, options.time_limit_seconds - setup);
  std::vector<std::string> pins;
  if (solution.status == PlanStatus::kInfeasible) {
    Blame blame(graph, mesh, topology, library, options, watch, setup);
    SP_CHECK(blame.run(solution));
    for (const Pin& pin : blame.pins()) pins.push_back(to_string(pin));
  }
  Plan plan = assemble_plan(problem, solution);
  plan.clash.pins = std::move(pins);
  plan.solve_seconds = watch.seconds();
  return plan;
}

}  // namespace shardprop

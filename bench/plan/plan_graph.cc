// Measures the time to plan a graph, and the gap of the plan:
//
//   plan_graph GRAPH MESH SECONDS THREADS [FACTOR]
//
// With FACTOR, the memory limit is FACTOR times a lower bound of the peak: the
// peak if every value takes its least memory. AdamW's state is counted then.
#include "plan/network/plan_network.h"
#include "plan/search/solve_plan.h"

#include <shardprop/io/load_graph.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <string>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

PlanProblem create(const Graph& graph, const char* mesh,
                   const OpLibrary& library, const PlanOptions& options) {
  return PlanProblem::create(graph, DeviceMesh::parse(mesh).value(),
                             default_topology(), library, options)
      .value();
}

// Returns the peak of the sum, over all variables of the network, of their
// least usages.
std::int64_t least_peak(const PlanProblem& problem) {
  const PlanNetwork with_memory =
      PlanNetwork::create(
          problem,
          {.memory_limit = std::numeric_limits<std::int64_t>::max() / 4})
          .value();
  const solver::Problem& network = with_memory.network();
  std::vector<std::int64_t> change(problem.graph().nodes().size() + 3, 0);
  for (std::size_t v = 0; v < network.num_variables(); ++v) {
    const solver::VariableId id(v);
    for (std::size_t u = 0; u < network.num_usages(id); ++u) {
      const solver::Usage usage = network.usage(id, u);
      if (usage.when.empty()) continue;
      const std::int64_t least =
          *std::min_element(usage.bytes.begin(), usage.bytes.end());
      change[static_cast<std::size_t>(usage.when.lo)] += least;
      change[static_cast<std::size_t>(usage.when.hi)] -= least;
    }
  }
  std::int64_t live = 0;
  std::int64_t peak = 0;
  for (const std::int64_t step : change) peak = std::max(peak, live += step);
  return peak;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const auto library = OpLibrary::standard();
  const Graph graph = load_graph(argv[1], *library).value();
  PlanOptions options;
  options.time_limit_seconds = std::atof(argv[3]);
  options.threads = std::atoi(argv[4]);
  if (argc > 5) {
    options.optimizer = Optimizer::kAdamW;
    options.memory_limit = static_cast<std::int64_t>(
        std::atof(argv[5]) * static_cast<double>(least_peak(
                                 create(graph, argv[2], *library, options))));
  }
  const auto start = Clock::now();
  const PlanProblem problem = create(graph, argv[2], *library, options);
  const double created = seconds_since(start);
  const auto solving = Clock::now();
  const PlanSolution solution = solve_plan(problem);
  fmt::print("{} on {}: {} in {:.2f} s ({:.2f} s to set up), cost {} bound {}",
             graph.name(), argv[2], to_string(solution.status),
             seconds_since(solving), created, solution.evaluation.objective,
             solution.lower_bound);
  if (solution.assignment) {
    fmt::print(" gap {:.4f} %",
               100.0 *
                   static_cast<double>(solution.evaluation.objective -
                                       solution.lower_bound) /
                   static_cast<double>(solution.evaluation.objective));
  }
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  fmt::print(", peak {:.3f} GiB",
             static_cast<double>(solution.evaluation.peak_bytes) / kGiB);
  if (options.memory_limit) {
    fmt::print(" of {:.3f}", static_cast<double>(*options.memory_limit) / kGiB);
  }
  fmt::print(", work {}\n", solution.work);
  return solution.assignment ? 0 : 1;
}

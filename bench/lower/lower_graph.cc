// Measures the time to lower a plan and to write a rank's program:
//
//   lower_graph GRAPH MESH ROUNDS
//
// Prints the minimum and the median of ROUNDS in milliseconds, the steps of the
// program, and the bytes of a rank's file. The plan is made before, within 30
// seconds, on the default topology within its memory, with AdamW.
#include <shardprop/io/emit_program.h>
#include <shardprop/io/load_graph.h>
#include <shardprop/lower/lower.h>
#include <shardprop/plan/make_plan.h>

#include <fmt/format.h>

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

namespace {

template <class Work>
void time(const char* what, int rounds, const Work& work) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> took;
  for (int i = 0; i < rounds; ++i) {
    const auto start = Clock::now();
    work();
    took.push_back(
        std::chrono::duration<double, std::milli>(Clock::now() - start)
            .count());
  }
  std::sort(took.begin(), took.end());
  fmt::print("{:<12} least {:8.1f} ms, median {:8.1f} ms\n", what, took[0],
             took[took.size() / 2]);
}

double peak_mib() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_maxrss) / 1024;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: lower_graph GRAPH MESH ROUNDS\n");
    return 2;
  }
  const auto library = OpLibrary::standard();
  const Graph graph = load_graph(argv[1], *library).value();
  const DeviceMesh mesh = DeviceMesh::parse(argv[2]).value();
  const int rounds = std::max(1, std::atoi(argv[3]));
  PlanOptions options;
  options.optimizer = Optimizer::kAdamW;
  options.time_limit_seconds = 30;
  options.memory_limit = default_topology().memory_bytes();
  const Plan plan =
      make_plan(graph, mesh, default_topology(), *library, options).value();
  fmt::print("{} on {}, {} nodes, peak so far {:.0f} MiB\n", graph.name(),
             to_string(mesh), graph.nodes().size(), peak_mib());
  std::size_t steps = 0;
  time("lower", rounds,
       [&] { steps = lower(plan, graph, *library).value().steps.size(); });
  fmt::print("{} steps, peak {:.0f} MiB\n", steps, peak_mib());
  const SpmdProgram program = lower(plan, graph, *library).value();
  std::size_t bytes = 0;
  time("emit a rank", rounds, [&] {
    bytes = emit_program(program, *library, mesh.size() - 1, EmitFormat::kPt2)
                .value()
                .size();
  });
  time("shardings", rounds, [&] { shardings_json(program, *library).value(); });
  fmt::print("{} bytes, peak {:.0f} MiB\n", bytes, peak_mib());
}

// Measures the import of the Llama 3 8B training graph from its file. Counters:
// seconds per 10,000 ops, and the peak memory of the process. The program must
// run from the root of the source tree.
#include <benchmark/benchmark.h>
#include <shardprop/io/load_graph.h>
#include <sys/resource.h>

#include <string>

using namespace shardprop;  // NOLINT(google-build-using-namespace)

namespace {

double peak_mebibytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

void load(benchmark::State& state, const std::string& path) {
  std::size_t ops = 0;
  for (auto _ : state) {
    const auto library = OpLibrary::standard();
    const auto graph = load_graph(path, *library);
    if (!graph) {
      state.SkipWithError(to_string(graph.error()).c_str());
      return;
    }
    ops = graph->nodes().size();
  }
  state.counters["ops"] = static_cast<double>(ops);
  state.counters["s_per_10k_ops"] =
      benchmark::Counter(static_cast<double>(ops) / 10000.0,
                         benchmark::Counter::kIsIterationInvariantRate |
                             benchmark::Counter::kInvert);
  state.counters["peak_MiB"] = peak_mebibytes();
}

}  // namespace

BENCHMARK_CAPTURE(load, llama3_8b_train,
                  "examples/graphs/llama3_8b_train.json.gz")
    ->Unit(benchmark::kMillisecond);

BENCHMARK_MAIN();

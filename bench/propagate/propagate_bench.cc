// Measures the costs of propagation for a framework, one round, as one line of
// JSON:
//
//   bench_propagate            every figure
//   bench_propagate quick      without the million keys
//
// compare.py runs rounds of it next to torch's DTensor. Times are medians over
// batches, in nanoseconds.
#include <shardprop/propagate/caching_propagator.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace shardprop;  // NOLINT(google-build-using-namespace)
using Clock = std::chrono::steady_clock;

std::shared_ptr<const OpLibrary> library() {
  static const auto kLibrary = OpLibrary::standard();
  return kLibrary;
}

struct Call {
  OpSchema op;
  std::vector<Layout> layouts;
};

Call call(const char* name, std::int64_t m, std::int64_t k, std::int64_t n,
          const std::vector<std::string>& layouts) {
  const bool product = std::string(name).find("mm") != std::string::npos;
  std::vector<TensorMeta> metas = {
      TensorMeta::contiguous({m, k}, DType::kBF16).value(),
      TensorMeta::contiguous(product ? Dims{k, n} : Dims{m, k}, DType::kBF16)
          .value()};
  Call out{make_op_schema(library()->find(name),
                          {{"", TensorArg{0}}, {"", TensorArg{1}}}, metas)
               .value(),
           {}};
  for (const std::string& text : layouts) {
    out.layouts.push_back(Layout::parse(text).value());
  }
  return out;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2,
                   values.end());
  return values[values.size() / 2];
}

// Returns nanoseconds per call, the median of batches.
double time_of(int batches, int calls, const std::function<void(int)>& run) {
  std::vector<double> batch_times;
  for (int b = 0; b < batches; ++b) {
    const auto begin = Clock::now();
    for (int i = 0; i < calls; ++i) run(b * calls + i);
    batch_times.push_back(
        std::chrono::duration<double, std::nano>(Clock::now() - begin).count() /
        calls);
  }
  return median(batch_times);
}

ShardingPropagator propagator(const std::string& mesh) {
  return ShardingPropagator::create(DeviceMesh::parse(mesh).value(),
                                    default_topology(), library())
      .value();
}

volatile std::int64_t sink = 0;

void figure(const std::string& name, double value, bool last = false) {
  std::printf("\"%s\": %.2f%s", name.c_str(), value, last ? "" : ", ");
}

void hits() {
  const CachingPropagator cache =
      CachingPropagator::create(propagator("4,8")).value();
  auto reader = cache.reader().value();
  // Each call has its own schema, as in a framework.
  std::vector<Call> calls;
  for (int i = 0; i < 256; ++i) {
    calls.push_back(
        call("aten.add.Tensor", 1024, 2048, 0, {"S(0),R", "S(0),R"}));
  }
  const auto ask = [&](int i) {
    const Call& c = calls[static_cast<std::size_t>(i) % calls.size()];
    sink = sink +
           reader.propagate(c.op, c.layouts).value()->outputs[0].meta().size(0);
  };
  ask(0);
  figure("hit_add_2d", time_of(400, 256, ask));
  std::vector<Call> several;
  for (int i = 0; i < 64; ++i) {
    several.push_back(
        call("aten.mm.default", 64 * (i + 1), 512, 256, {"S(0),R", "R,S(1)"}));
  }
  const auto rotate = [&](int i) {
    const Call& c = several[static_cast<std::size_t>(i) % several.size()];
    sink = sink +
           reader.propagate(c.op, c.layouts).value()->outputs[0].meta().size(0);
  };
  for (int i = 0; i < 256; ++i) rotate(i);
  figure("hit_mm_of_64", time_of(400, 256, rotate));
}

void new_batches() {
  const CachingPropagator cache =
      CachingPropagator::create(propagator("4,8")).value();
  auto reader = cache.reader().value();
  const auto of = [&](int batch) {
    return call("aten.mm.default", 32 * (batch + 1), 512, 256,
                {"S(0),R", "R,S(1)"});
  };
  const auto ask = [&](const Call& c) {
    sink = sink +
           reader.propagate(c.op, c.layouts).value()->outputs[0].meta().size(0);
  };
  ask(of(0));
  // The call is built just before, as in a framework that prepares the next
  // call.
  constexpr int kCalls = 16;
  std::vector<double> batches;
  for (int batch = 0; batch < 512; ++batch) {
    std::vector<Call> calls;
    for (int i = 0; i < kCalls; ++i) {
      calls.push_back(of(1 + batch * kCalls + i));
    }
    batches.push_back(time_of(
        1, kCalls, [&](int i) { ask(calls[static_cast<std::size_t>(i)]); }));
  }
  figure("new_batch_mm", median(batches));
}

// Measures calls whose results are not cached.
void misses(const std::string& name, const std::string& mesh,
            const std::vector<std::string>& fits,
            const std::vector<std::string>& moves) {
  for (const auto& [what, layouts] :
       {std::pair("fits", fits), std::pair("moves", moves)}) {
    // The operands, their shapes, layouts and moves were seen before, but not
    // in one call, so the call misses.
    const ShardingPropagator known = propagator(mesh);
    const Call c = call("aten.mm.default", 4096, 2048, 1024, layouts);
    const auto again = [&](int) {
      sink = sink + known.propagate(c.op, c.layouts)->outputs[0].meta().size(0);
    };
    again(0);
    figure("miss_mm_" + name + "_" + what, time_of(40, 25, again));
    // Nothing seen before.
    const ShardingPropagator fresh = propagator(mesh);
    std::vector<Call> calls;
    const int count = std::string(what) == "fits" ? 400 : 24;
    for (int i = 0; i < count; ++i) {
      calls.push_back(
          call("aten.mm.default", 512 * (i + 1), 64 * (i + 16), 1024, layouts));
    }
    figure(
        "miss_mm_" + name + "_" + what + "_new_shape",
        time_of(count, 1, [&](int i) {
          const Call& one = calls[static_cast<std::size_t>(i)];
          sink =
              sink +
              fresh.propagate(one.op, one.layouts)->outputs[0].meta().size(0);
        }));
  }
}

// Returns calls per second of two concurrent threads, each with its own reader.
double rate_of_two(const CachingPropagator& a, const CachingPropagator& b) {
  constexpr int kCalls = 400'000;
  std::atomic<int> ready{0};
  const auto work = [&](const CachingPropagator& cache) {
    auto reader = cache.reader().value();
    std::vector<Call> calls;
    for (int i = 0; i < 16; ++i) {
      calls.push_back(call("aten.mm.default", 64 * (i + 1), 512, 256,
                           {"S(0),R", "R,S(1)"}));
    }
    for (int i = 0; i < 64; ++i) {
      const Call& c = calls[static_cast<std::size_t>(i) % 16];
      (void)reader.propagate(c.op, c.layouts);
    }
    ++ready;
    while (ready < 2) std::this_thread::yield();
    std::int64_t sum = 0;
    for (int i = 0; i < kCalls; ++i) {
      const Call& c = calls[static_cast<std::size_t>(i) % 16];
      sum +=
          reader.propagate(c.op, c.layouts).value()->outputs[0].meta().size(0);
    }
    sink = sum;
  };
  const auto begin = Clock::now();
  std::thread other([&] { work(b); });
  work(a);
  other.join();
  return 2.0 * kCalls /
         std::chrono::duration<double>(Clock::now() - begin).count();
}

void two_threads() {
  const CachingPropagator shared =
      CachingPropagator::create(propagator("4,8")).value();
  const CachingPropagator first =
      CachingPropagator::create(propagator("4,8")).value();
  const CachingPropagator second =
      CachingPropagator::create(propagator("4,8")).value();
  std::vector<double> ratios;
  for (int i = 0; i < 5; ++i) {
    const double apart = rate_of_two(first, second);
    ratios.push_back(rate_of_two(shared, shared) / apart);
  }
  figure("two_threads_of_two_copies", median(ratios));
}

// Measures a stream of keys that occur once, next to a hot set.
void million_keys() {
  CacheOptions options;
  options.share_shapes = false;
  const CachingPropagator cache =
      CachingPropagator::create(propagator("4,8"), options).value();
  auto reader = cache.reader().value();
  constexpr int kHot = 10'000;
  constexpr int kOnce = 1'000'000;
  const auto ask = [&](std::int64_t size) {
    const Call c = call("aten.add.Tensor", 32, size, 0, {"S(0),R", "S(0),R"});
    return reader.propagate(c.op, c.layouts).has_value();
  };
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kHot; ++i) ask(i + 1);
  }
  std::mt19937_64 random(1);
  std::uint64_t hot_misses = 0;
  std::uint64_t hot_calls = 0;
  std::size_t most = 0;
  const auto begin = Clock::now();
  for (int i = 0; i < kOnce; ++i) {
    ask(1'000'000 + i);
    for (int k = 0; k < 2; ++k) {
      const std::uint64_t before = cache.statistics().misses;
      ask(static_cast<std::int64_t>(random() % kHot) + 1);
      hot_misses += cache.statistics().misses - before;
      ++hot_calls;
    }
    if (i % 1024 == 0) most = std::max(most, cache.statistics().entries);
  }
  figure("million_keys_seconds",
         std::chrono::duration<double>(Clock::now() - begin).count());
  figure("million_keys_most_entries", static_cast<double>(most));
  figure("million_keys_megabytes",
         static_cast<double>(cache.statistics().bytes) / (1 << 20));
  figure("hot_hit_rate", 100 - 100 * static_cast<double>(hot_misses) /
                                   static_cast<double>(hot_calls));
}

}  // namespace

int main(int argc, char** argv) {
  std::printf("{");
  hits();
  new_batches();
  misses("2d", "4,8", {"S(0),R", "R,S(1)"}, {"S(0),S(1)", "S(1),S(0)"});
  misses("3d", "2,4,8", {"S(0),R,R", "R,R,S(1)"},
         {"S(0),S(1),R", "S(1),S(0),R"});
  misses("5d", "2,2,2,2,2", {"S(0),R,R,R,R", "R,R,R,R,S(1)"},
         {"S(0),S(1),R,R,R", "S(1),S(0),R,R,R"});
  two_threads();
  if (argc < 2 || std::string(argv[1]) != "quick") million_keys();
  figure("rounds", 1, true);
  std::printf("}\n");
  return 0;
}

// How long planning takes: uncached by mesh dims, cached, and all pairs.
//
// The uncached benchmarks go round the same random pairs of layouts; their
// counters are the median and the 90th percentile over the pairs, each pair's
// time being its least over the run. No plan is remembered; the planner has
// planned before, as in any use but the first (first_plan: a planner's very
// first).
#include "redistribute/redistribute_rows.h"

#include <shardprop/redistribute/caching_planner.h>
#include <shardprop/redistribute/planner.h>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

namespace shardprop {
namespace {

template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(to_string(result.error()));
  return *std::move(result);
}

constexpr const char* kMeshes[] = {"8", "dp=4,tp=8", "pp=2,dp=4,tp=8",
                                   "pp=2,dp=2,cp=2,tp=8"};
constexpr const char* kTensors[] = {"bf16[4096,4096]", "bf16[8,2048,4096]",
                                    "bf16[8,32,2048,128]", "f32[5,7,130]"};

std::vector<std::pair<Layout, Layout>> pairs(int mesh_ndim, int rank,
                                             std::size_t count) {
  std::mt19937 random(17);
  const auto draw = [&](bool partial) {
    Placements placements;
    for (int i = 0; i < mesh_ndim; ++i) {
      const auto pick = static_cast<int>(
          random() % static_cast<unsigned>(rank + (partial ? 2 : 1)));
      placements.push_back(pick < rank   ? Placement::shard(pick)
                           : pick > rank ? Placement::partial(ReduceOp::kSum)
                                         : Placement::replicate());
    }
    return value_of(Layout::create(placements));
  };
  std::vector<std::pair<Layout, Layout>> out;
  while (out.size() < count) {
    out.emplace_back(draw(true), draw(false));
    if (out.back().first == out.back().second) out.pop_back();
  }
  return out;
}

void uncached_plan(benchmark::State& state) {
  const auto mesh = value_of(DeviceMesh::parse(kMeshes[state.range(0) - 1]));
  const auto meta = value_of(TensorMeta::parse(kTensors[state.range(1)]));
  const auto planner =
      value_of(RedistributePlanner::create(mesh, default_topology()));
  const auto asked = pairs(mesh.ndim(), meta.rank(), 200);
  for (std::size_t i = 0; i < 8; ++i) {
    benchmark::DoNotOptimize(
        planner.plan(asked[i].first, asked[i].second, meta));
  }
  std::vector<double> least(asked.size(), 1e18);
  std::size_t next = 0;
  for (auto _ : state) {
    const auto& [src, dst] = asked[next];
    const auto start = std::chrono::steady_clock::now();
    auto plan = planner.plan(src, dst, meta);
    const std::chrono::duration<double, std::micro> took =
        std::chrono::steady_clock::now() - start;
    benchmark::DoNotOptimize(plan);
    least[next] = std::min(least[next], took.count());
    next = (next + 1) % asked.size();
  }
  std::erase(least, 1e18);
  std::sort(least.begin(), least.end());
  state.counters["median_us"] = least[least.size() / 2];
  state.counters["p90_us"] = least[least.size() * 9 / 10];
  state.SetLabel(std::string(kMeshes[state.range(0) - 1]) + " " +
                 kTensors[state.range(1)]);
}
BENCHMARK(uncached_plan)
    ->ArgsProduct({{1, 2, 3, 4}, {0, 1, 2, 3}})
    ->Iterations(600)
    ->Unit(benchmark::kMicrosecond);

void first_plan(benchmark::State& state) {
  const auto mesh = value_of(DeviceMesh::parse(kMeshes[state.range(0) - 1]));
  const auto meta = value_of(TensorMeta::parse(kTensors[1]));
  const auto asked = pairs(mesh.ndim(), meta.rank(), 200);
  std::size_t next = 0;
  for (auto _ : state) {
    const auto planner =
        value_of(RedistributePlanner::create(mesh, default_topology()));
    const auto& [src, dst] = asked[next];
    benchmark::DoNotOptimize(planner.plan(src, dst, meta));
    next = (next + 1) % asked.size();
  }
}
BENCHMARK(first_plan)->DenseRange(1, 4)->Unit(benchmark::kMicrosecond);

// Plans from a layout of a dim that is not divisible by its parts, with the
// inner mesh dim first. The layout has several encodings.
void uneven_strided_plan(benchmark::State& state) {
  const auto mesh = value_of(DeviceMesh::parse(kMeshes[state.range(0) - 1]));
  const auto meta = value_of(TensorMeta::parse(kTensors[3]));
  const auto planner =
      value_of(RedistributePlanner::create(mesh, default_topology()));
  const Layout src = value_of(
      Layout::parse(mesh.ndim() == 2 ? "SS(2,8),S(2)" : "R,SS(2,8),S(2)"));
  const Layout dst = Layout::replicated(mesh.ndim());
  for (auto _ : state) {
    benchmark::DoNotOptimize(planner.plan(src, dst, meta));
  }
}
BENCHMARK(uneven_strided_plan)->DenseRange(2, 3)->Unit(benchmark::kMillisecond);

void cached_plan(benchmark::State& state) {
  const auto mesh = value_of(DeviceMesh::parse(kMeshes[state.range(0) - 1]));
  const auto meta = value_of(TensorMeta::parse(kTensors[1]));
  CachingPlanner planner(
      value_of(RedistributePlanner::create(mesh, default_topology())));
  const auto asked = pairs(mesh.ndim(), meta.rank(), 64);
  for (const auto& [src, dst] : asked) value_of(planner.plan(src, dst, meta));
  std::size_t next = 0;
  for (auto _ : state) {
    const auto& [src, dst] = asked[next];
    benchmark::DoNotOptimize(planner.cost(src, dst, meta));
    next = (next + 1) % asked.size();
  }
}
BENCHMARK(cached_plan)->DenseRange(1, 4)->Unit(benchmark::kNanosecond);

void all_pairs(benchmark::State& state) {
  const auto mesh = value_of(DeviceMesh::parse(kMeshes[2]));
  const auto meta = value_of(TensorMeta::parse(kTensors[2]));
  const auto planner =
      value_of(RedistributePlanner::create(mesh, default_topology()));
  std::size_t layouts = 0;
  for (auto _ : state) {
    const auto rows = value_of(RedistributeRows::create(planner, meta));
    layouts = rows.layouts().size();
    for (std::size_t from = 0; from < layouts; ++from) {
      benchmark::DoNotOptimize(rows.costs_from(from));
    }
  }
  state.counters["layouts"] = static_cast<double>(layouts);
}
BENCHMARK(all_pairs)->Unit(benchmark::kMillisecond);

void planner_of_a_mesh(benchmark::State& state) {
  const auto mesh = value_of(DeviceMesh::parse(kMeshes[state.range(0) - 1]));
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        RedistributePlanner::create(mesh, default_topology()));
  }
}
BENCHMARK(planner_of_a_mesh)->DenseRange(1, 4)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace shardprop

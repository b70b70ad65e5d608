// How soon the bound of messages settles.
#include <shardprop/solver/problem.h>

#include <solver/core.h>
#include <solver/dual_bound.h>
#include <solver/network.h>
#include <solver/rng.h>

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

namespace shardprop::solver {
namespace {

// A program of equal layers, each a ring of operators; costs of all sizes, as
// those of layouts are.
Problem chain_of_rings(std::uint64_t seed) {
  constexpr std::size_t kLayers = 32;
  constexpr std::size_t kRing = 8;
  constexpr std::size_t kChoices = 16;
  Rng rng(seed);
  ProblemBuilder builder;
  const auto costs = [&](std::size_t n) {
    std::vector<std::int64_t> out(n);
    for (auto& cost : out) cost = rng.below(2 << rng.below(17));
    return out;
  };
  std::vector<TableId> tables;
  for (std::size_t i = 0; i < 2 * kRing; ++i) {
    tables.push_back(
        builder.add_table(kChoices, kChoices, costs(kChoices * kChoices)));
  }
  std::vector<std::vector<std::int64_t>> of_operator;
  for (std::size_t i = 0; i < kRing; ++i) {
    of_operator.push_back(costs(kChoices));
  }
  std::vector<VariableId> before;
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    std::vector<VariableId> ring;
    for (std::size_t i = 0; i < kRing; ++i) {
      ring.push_back(builder.add_variable(of_operator[i]));
    }
    for (std::size_t i = 0; i < kRing; ++i) {
      builder.add_edge(ring[i], ring[(i + 1) % kRing], tables[i]);
      if (layer == 0 || i % 2 == 1) continue;
      builder.add_edge(before[i], ring[(i + 3) % kRing], tables[kRing + i]);
    }
    before = ring;
  }
  return *std::move(builder).build();
}

double bound_after(const Core& core, std::uint64_t work) {
  DualBound dual(core);
  while (dual.work() < work && !dual.stalled()) dual.advance(kInfinity);
  return dual.best_bound();
}

// Sweeps alone take half as many again, or twice as many.
TEST_CASE("the dual bound of a chain of rings settles soon") {
  for (const std::uint64_t seed : {2, 3}) {
    CAPTURE(seed);
    Network network(chain_of_rings(seed));
    const Core core(network, 1e7);
    const double soon = bound_after(core, 14'000'000);
    const double late = bound_after(core, 70'000'000);
    CAPTURE(soon);
    CAPTURE(late);
    CHECK(soon > 0.999 * late);
  }
}

}  // namespace
}  // namespace shardprop::solver

// How soon the bound of messages settles.
#include "solver/random_problem.h"

#include "solver/bound/dual_bound.h"
#include "solver/model/network.h"
#include "solver/presolve/core.h"

#include <doctest/doctest.h>

#include <cstdint>

namespace shardprop::solver {
namespace {

double bound_after(const Core& core, std::uint64_t work) {
  DualBound dual(core);
  while (dual.work() < work && !dual.stalled()) dual.advance(kInfinity);
  return dual.best_bound();
}

// Sweeps alone take half as many again, or twice as many.
TEST_CASE("the dual bound of a chain of rings settles soon") {
  for (const std::uint64_t seed : {2, 3}) {
    CAPTURE(seed);
    Network network(testing::chain_of_rings(seed));
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

#include <shardprop/mesh/product_cost.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace shardprop {
namespace {

// A tile of cuBLAS and the share of the device's rate that it reaches: the
// products that it makes of each operand it loads, 2 m n / (m + n), as against
// a tile of 128 x 128, from which on the multipliers are the bound.
struct Tile {
  double rows;
  double columns;
  double share;
};
constexpr Tile kTiles[] = {
    {256, 128, 1},  {128, 256, 1},    {128, 128, 1},    {256, 64, 0.8},
    {64, 256, 0.8}, {128, 64, 0.667}, {64, 128, 0.667}, {64, 64, 0.5},
    {128, 32, 0.4}, {32, 128, 0.4},   {128, 16, 0.222}, {16, 128, 0.222},
};

// Parts of a sum worth a tile of their own.
constexpr double kSplits[] = {1, 2, 4, 8, 16};
constexpr double kLeastDepth = 256;
constexpr double kAccumulatorBytes = 4;

}  // namespace

ProductCost product_cost(const Topology& topology, const ProductShape& shape) {
  const double points = shape.batch * shape.rows * shape.columns * shape.depth;
  const double processors = topology.multiprocessors.value;
  if (processors == 0 || points == 0) return {2 * points, 0};
  const double results = shape.batch * shape.rows * shape.columns;
  ProductCost best{std::numeric_limits<double>::infinity(), 0};
  double least = best.flops;
  for (const double split : kSplits) {
    const double depth = shape.depth / split;
    if (split > 1 && depth < kLeastDepth) break;
    // Bytes weigh as the operations that the device does meanwhile.
    const double bytes =
        split == 1 ? 0 : 2 * split * results * kAccumulatorBytes;
    const double meanwhile = bytes * topology.flops(MathClass::kF16) /
                             (topology.memory_gbps.value * 1e9);
    for (const Tile& tile : kTiles) {
      const double tiles = shape.batch * split *
                           std::ceil(shape.rows / tile.rows) *
                           std::ceil(shape.columns / tile.columns);
      const double rounds = std::ceil(tiles / processors);
      const double flops = rounds * processors * 2 * tile.rows * tile.columns *
                           depth / tile.share;
      if (flops + meanwhile >= least) continue;
      least = flops + meanwhile;
      best = {flops, bytes};
    }
  }
  return best;
}

}  // namespace shardprop

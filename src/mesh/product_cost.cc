#include <shardprop/mesh/product_cost.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace shardprop {
namespace {

// The tiles of cuBLAS.
struct Tile {
  double rows;
  double columns;
};
constexpr Tile kTiles[] = {
    {256, 128}, {128, 256}, {128, 128}, {256, 64}, {64, 256}, {128, 64},
    {64, 128},  {64, 64},   {128, 32},  {32, 128}, {128, 16}, {16, 128},
};

// How often a tile multiplies each number that it loads.
double reuse(const Tile& tile) {
  return tile.rows * tile.columns / (tile.rows + tile.columns);
}

double item_bytes(MathClass math) {
  switch (math) {
    case MathClass::kF64:
      return 8;
    case MathClass::kF32:
    case MathClass::kTf32:
      return 4;
    case MathClass::kF16:
      return 2;
    case MathClass::kF8:
      return 1;
  }
  return 1;
}

// The reuse from which on the multipliers are the bound and not what feeds
// them: that of a tile of 128 x 128 at the rate of 16 bits, less where fewer
// bytes are multiplied in the same time.
double full_reuse(const Topology& topology, MathClass math) {
  return reuse({128, 128}) * topology.flops(math) * item_bytes(math) /
         (topology.flops(MathClass::kF16) * item_bytes(MathClass::kF16));
}

// Parts of a sum worth a tile of their own.
constexpr double kSplits[] = {1, 2, 4, 8, 16};
constexpr double kLeastDepth = 256;
constexpr double kAccumulatorBytes = 4;

}  // namespace

ProductCost product_cost(const Topology& topology, MathClass math,
                         const ProductShape& shape) {
  const double points = shape.batch * shape.rows * shape.columns * shape.depth;
  const double processors = topology.multiprocessors.value;
  if (processors == 0 || points == 0) return {2 * points, 0};
  const double results = shape.batch * shape.rows * shape.columns;
  ProductCost best{std::numeric_limits<double>::infinity(), 0};
  double least = best.flops;
  const double needed = full_reuse(topology, math);
  for (const double split : kSplits) {
    const double depth = shape.depth / split;
    if (split > 1 && depth < kLeastDepth) break;
    // Bytes weigh as the operations that the device does meanwhile.
    const double bytes =
        split == 1 ? 0 : 2 * split * results * kAccumulatorBytes;
    const double meanwhile =
        bytes * topology.flops(math) / (topology.memory_gbps.value * 1e9);
    for (const Tile& tile : kTiles) {
      const double tiles = shape.batch * split *
                           std::ceil(shape.rows / tile.rows) *
                           std::ceil(shape.columns / tile.columns);
      const double rounds = std::ceil(tiles / processors);
      const double flops = rounds * processors * 2 * tile.rows * tile.columns *
                           depth / std::min(1.0, reuse(tile) / needed);
      if (flops + meanwhile >= least) continue;
      least = flops + meanwhile;
      best = {flops, bytes};
    }
  }
  return best;
}

}  // namespace shardprop

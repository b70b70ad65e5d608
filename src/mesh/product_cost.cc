#include <shardprop/mesh/product_cost.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace shardprop {
namespace {

// The tile shapes that cuBLAS uses.
struct Tile {
  double rows;
  double columns;
};
constexpr Tile kTiles[] = {
    {256, 128}, {128, 256}, {128, 128}, {256, 64}, {64, 256}, {128, 64},
    {64, 128},  {64, 64},   {128, 32},  {32, 128}, {128, 16}, {16, 128},
};

// reuse() is the number of multiplications for each number that a tile loads.
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

// full_reuse() is the least reuse at which the multipliers, not the loads, are
// the bottleneck. For 16-bit types it is the reuse of a 128 x 128 tile. It
// grows with the rate of the dtype and with the bytes of an item.
double full_reuse(const Topology& topology, MathClass math) {
  return reuse({128, 128}) * topology.flops(math) * item_bytes(math) /
         (topology.flops(MathClass::kF16) * item_bytes(MathClass::kF16));
}

// The numbers of parts into which a sum may be split, so that each part has
// tiles of its own (split-K).
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
    // The traffic of partial results counts as the flops that the device
    // performs in the same time.
    const double bytes =
        split == 1 ? 0 : 2 * split * results * kAccumulatorBytes;
    const double meanwhile =
        bytes * topology.matmul_rate(math) / topology.memory_rate();
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

// `product_cost` estimates the work of a matmul as a device runs it, tile by
// tile.
//
// Each multiprocessor of a device works on one tile of the result at a time.
// Two effects cost time:
//
// 1. Tile quantisation: a tile that crosses the edge of the result costs as
//    much as a full tile.
// 2. Wave quantisation: the last round of tiles occupies all multiprocessors
//    even if it has fewer tiles than multiprocessors.
//
// Small tiles lose less to both effects but run more slowly. A long sum may be
// split over several tiles, whose results are then added.
//
//   const Topology h100 = find_topology("dgx-h100").value();
//   product_cost(h100, MathClass::kF16,
//                {.rows = 8192, .columns = 8192, .depth = 8192});
//     // 2.6% more than 2 * 8192^3: 2048 tiles of 128 x 256 in 16 rounds of 132
//   product_cost(h100, MathClass::kF16,
//                {.rows = 128, .columns = 128, .depth = 8192});
//     // 12 times 2 * 128 * 128 * 8192: few tiles, however long the sum
//
// Source: NVIDIA, Matrix Multiplication Background User's Guide (DU-09799):
// both losses, and the tiles of cuBLAS from the most to the least efficient.
#pragma once

#include <shardprop/mesh/topology.h>

namespace shardprop {

// `ProductShape` is `batch` matmuls [rows, depth] x [depth, columns]. The sizes
// are doubles because the number of elements of a large tensor may exceed an
// integer.
struct ProductShape {
  double batch = 1;
  double rows = 1;
  double columns = 1;
  double depth = 1;
};

// `ProductCost` is the work of a matmul for the roofline of topology.h.
struct ProductCost {
  // Operations that the device could run in the time of the matmul. They are at
  // least 2 * batch * rows * columns * depth.
  double flops = 0;
  double bytes = 0;  // read and written to add the results of a split sum
};

// Returns the lowest cost over all tiles and splits. On a topology without
// multiprocessors it returns 2 * batch * rows * columns * depth.
ProductCost product_cost(const Topology& topology, MathClass math,
                         const ProductShape& shape);

}  // namespace shardprop

// ProductShape: a matrix product as a device runs it, tile by tile.
//
// The multiprocessors of a device each work on one tile of the result at a
// time. Two things are lost with it. A tile that hangs over the edge of the
// result is paid in full (tile quantisation); and the last round of tiles keeps
// all multiprocessors waiting although it may not have a tile for each (wave
// quantisation). Small tiles lose less to both and run slower. A long sum may
// be split over several tiles, whose results are then added up.
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

// `batch` products [rows, depth] x [depth, columns], of real numbers, as large
// tensors have more points than an integer counts.
struct ProductShape {
  double batch = 1;
  double rows = 1;
  double columns = 1;
  double depth = 1;
};

struct ProductCost {
  // Operations that the device has time for while it runs the product: no less
  // than 2 * batch * rows * columns * depth.
  double flops = 0;
  double bytes = 0;  // read and written for results that are added up
};

// The cheapest over tiles and splits. On a topology without multiprocessors,
// the operations themselves.
ProductCost product_cost(const Topology& topology, MathClass math,
                         const ProductShape& shape);

}  // namespace shardprop

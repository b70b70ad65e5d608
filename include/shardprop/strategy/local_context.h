// LocalContext: one strategy of one operator on a mesh, and what each rank runs
// for it.
//
//   view f32[4,6,8] -> f32[24,8], strategy S(0)->S(0) on [2]:
//     rank_arguments(context)   // size: [[12,8],[12,8]]
#pragma once

#include <shardprop/base/inline_vector.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/ops/op_schema.h>
#include <shardprop/placement/layout.h>
#include <shardprop/placement/local_region.h>
#include <shardprop/ops/index_space.h>
#include <shardprop/strategy/layout_table.h>
#include <shardprop/strategy/local_program.h>
#include <shardprop/strategy/op_strategy.h>

#include <cstdint>
#include <string>
#include <vector>

namespace shardprop {

struct LocalContext {
  const OpSchema& op;
  const IndexSpace& space;
  const DeviceMesh& mesh;
  const LayoutTable& layouts;
  const PlacementStrategy& strategy;

  // Mesh dims given to a factor.
  DimIndices mesh_dims(int factor) const;
  bool shards(int factor) const { return !mesh_dims(factor).empty(); }
  const Layout& input(int i) const;
  const Layout& output(int i) const;
  // Elements of the largest local part of an operand.
  std::int64_t max_local_input_elements(int input) const;
  std::int64_t max_local_output_elements(int output) const;
};

// What each rank runs: the operator itself with its local arguments, or the
// program that its index space has for what is sharded.
LocalProgram local_program(const LocalContext& context);
// Whether that is more than the operator itself.
bool needs_program(const LocalContext& context);

// A rank's value of a scalar. Precondition: an offset is asked only of dims
// held in one piece.
std::int64_t evaluate(const RankScalar& scalar, const LocalContext& context,
                      const Coordinate& at);

// Arguments whose values differ from the unsharded operator's on some rank.
struct RankArgument {
  std::string name;
  bool is_list = false;
  std::vector<std::vector<std::int64_t>> values;  // by rank in mesh order
};
std::vector<RankArgument> rank_arguments(const LocalContext& context);

// Points of the iteration space on the busiest rank.
double max_local_points(const LocalContext& context);

}  // namespace shardprop

// `LocalContext` is one strategy of one operator on a mesh. From it this header
// derives the program of each rank.
//
//   view f32[4,6,8] -> f32[24,8], strategy S(0)->S(0) on [2]:
//     rank_arguments(context)[0].at({1})   // size: [12,8]
#pragma once

#include <shardprop/base/inline_vector.h>
#include <shardprop/mesh/device_mesh.h>
#include <shardprop/ops/index_space.h>
#include <shardprop/ops/op_schema.h>
#include <shardprop/placement/layout.h>
#include <shardprop/placement/local_region.h>
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

  // Returns the mesh dims that shard a factor, in shard order.
  DimIndices mesh_dims(int factor) const;
  bool shards(int factor) const { return !mesh_dims(factor).empty(); }
  // Returns the shardings of all factors; null for mesh order.
  const Layout* shardings() const {
    return strategy.shardings.valid() ? &layouts[strategy.shardings] : nullptr;
  }
  const Layout& input(int i) const;
  const Layout& output(int i) const;
  // Returns the elements of the largest local tensor of an operand.
  std::int64_t max_local_input_elements(int input) const;
  std::int64_t max_local_output_elements(int output) const;
};

// Returns what each rank runs: the operator itself with its local arguments, or
// the program of its index space for the sharded factors.
LocalProgram local_program(const LocalContext& context);
// Returns whether local_program() is more than the operator itself.
bool needs_program(const LocalContext& context);

// Returns a rank's value of a scalar. Precondition: a dim whose offset is used
// is one interval on every rank.
std::int64_t evaluate(const RankScalar& scalar, const LocalContext& context,
                      const Coordinate& at);

// `RankArgument` is an argument that may differ between ranks: a formula,
// evaluated at a rank's coordinate.
class RankArgument {
 public:
  RankArgument(std::string name, bool is_list,
               const std::vector<RankScalar>& values,
               const LocalContext& context);

  // Returns the value on the rank at `at`; it has one entry unless it is a
  // list.
  std::vector<std::int64_t> at(const Coordinate& at) const;
  // Returns the mesh dims on which the value depends, ascending. Ranks that
  // differ only in other dims have the same value.
  DimIndices mesh_dims() const;

  const std::string& name() const { return name_; }
  bool is_list() const { return is_list_; }
  const DeviceMesh& mesh() const { return mesh_; }

 private:
  // An entry is constant + scale * x. x is the number of elements of a dim of
  // `size` elements that a rank holds, or the offset of the first.
  struct Entry {
    RankScalar scalar;
    std::int64_t size = 0;
    // Shards `scalar.dim`; for kFactorSize, dim 0 stands for the factor.
    Layout layout;
    DimIndices cuts;  // the mesh dims that shard it
  };
  std::int64_t value(const Entry& entry, const Coordinate& at) const;

  std::string name_;
  bool is_list_ = false;
  DeviceMesh mesh_;
  std::vector<Entry> entries_;
};
// Returns the arguments whose values differ from the unsharded operator's on
// some rank.
std::vector<RankArgument> rank_arguments(const LocalContext& context);

// Returns the points of the iteration space on the busiest rank.
double max_local_points(const LocalContext& context);

}  // namespace shardprop

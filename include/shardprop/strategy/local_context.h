// LocalContext: one strategy of one operator on a mesh, and what each rank runs
// for it.
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

// An argument that may differ on the ranks: a formula, evaluated for the rank
// that asks.
class RankArgument {
 public:
  RankArgument(std::string name, bool is_list,
               const std::vector<RankScalar>& values,
               const LocalContext& context);

  // Its value on the rank at `at`; of one entry unless it is a list.
  std::vector<std::int64_t> at(const Coordinate& at) const;
  // The mesh dims that it depends on, ascending: ranks that differ in others
  // only have the same value.
  DimIndices mesh_dims() const;

  const std::string& name() const { return name_; }
  bool is_list() const { return is_list_; }
  const DeviceMesh& mesh() const { return mesh_; }

 private:
  // constant + scale * what a rank holds of `size` elements: how many, or
  // where they begin.
  struct Entry {
    RankScalar scalar;
    std::int64_t size = 0;
    Layout layout;    // of kLocalSize, kOffset: cuts `scalar.dim`
    DimIndices cuts;  // mesh dims; of kFactorSize in the order of the cuts
  };
  std::int64_t value(const Entry& entry, const Coordinate& at) const;

  std::string name_;
  bool is_list_ = false;
  DeviceMesh mesh_;
  std::vector<Entry> entries_;
};
// Those whose values differ from the unsharded operator's on some rank.
std::vector<RankArgument> rank_arguments(const LocalContext& context);

// Points of the iteration space on the busiest rank.
double max_local_points(const LocalContext& context);

}  // namespace shardprop

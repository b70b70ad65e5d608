// Lowers redistributions to PyTorch operators: the functional collectives and
// local operators that one rank runs in one step of a plan.
//
//   f32[8,5] S(1) -> R on tp=2:  constant_pad_nd to [8,3], all_gather to
//   [16,3], wait, reshape to [2,8,3], permute to [8,2,3], reshape to [8,6],
//   slice to [8,5]
#pragma once

#include "io/emit/torch_graph.h"

#include <shardprop/mesh/device_mesh.h>
#include <shardprop/placement/local_region.h>
#include <shardprop/redistribute/redistribute_plan.h>

#include <string>

namespace shardprop::emit {

// Returns the name of the group over these mesh dims: shardprop_dp_tp.
std::string group_name(const DeviceMesh& mesh, const DimIndices& mesh_dims);

class Moves {
 public:
  Moves(TorchGraph& graph, const DeviceMesh& mesh, Coordinate at,
        Argument device)
      : graph_(graph),
        mesh_(mesh),
        at_(std::move(at)),
        device_(std::move(device)) {}

  // `whole` is the full tensor; `x` is this rank's part of it. Errors:
  // kPlanStep.
  Result<TorchId> run(const RedistributeStep& step, const TensorMeta& whole,
                      TorchId x);
  // Every rank of the group has a tensor of the same shape as x.
  TorchId all_reduce(const CollectiveStep& step, TorchId x, ReduceOp op,
                     double scale);
  // Returns the tensors of the ranks, concatenated along dim 0.
  TorchId all_gather(const CollectiveStep& step, TorchId x);
  // Returns this rank's part, along dim 0, of the reduced tensor. All parts have
  // the same size.
  TorchId reduce_scatter(const CollectiveStep& step, TorchId x, ReduceOp op);

 private:
  TorchId communicate(const std::string& op, TorchArguments args,
                      const DimIndices& mesh_dims, TensorMeta meta);
  // Adds a collective that moves elements unchanged; its result has this shape.
  TorchId send(const std::string& op, TorchId x, TorchArguments args,
               const DimIndices& mesh_dims, Dims shape);
  TorchId reduced(const std::string& op, const CollectiveStep& step, TorchId x,
                  ReduceOp by, Dims shape, std::int64_t ranks);
  LocalRegion region(const Layout& layout, const Coordinate& at) const;

  Result<TorchId> gather(const RedistributeStep& step, TorchId x);
  Result<TorchId> reduce_scatter(const RedistributeStep& step, TorchId x);
  Result<TorchId> exchange(const RedistributeStep& step, TorchId x);
  Result<TorchId> slice(const RedistributeStep& step, TorchId x);
  Result<TorchId> exchange_pieces(const RedistributeStep& step, TorchId x);
  TorchId flat(TorchId x);

  TorchGraph& graph_;
  const DeviceMesh& mesh_;
  Coordinate at_;
  Argument device_;
  const TensorMeta* whole_ = nullptr;
};

}  // namespace shardprop::emit

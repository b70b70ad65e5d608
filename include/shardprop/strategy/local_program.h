// LocalProgram: what each rank runs for one strategy of one operator.
//
// Usually the operator itself on the local tensors; where that is not enough, a
// short list of operators and collectives. Scalars may differ on the ranks:
// they are linear in a local size or an offset of an operand (RankScalar).
//
//   embedding, weight sharded over its rows, f32[30,8] S(0):
//     %0 = aten.sub.Scalar(indices, offset(weight, 0))
//     %1 = ...
//   view f32[4,6,8] S(0) -> f32[24,8] S(0):
//     aten.view.default(self, [local_size(output, 0), 8])
#pragma once

#include <shardprop/base/inline_vector.h>
#include <shardprop/mesh/collective_kind.h>
#include <shardprop/ops/decomposition.h>
#include <shardprop/placement/placement.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace shardprop {

// A collective over some mesh dims, of one value that every rank of the group
// holds in the same shape: an all-reduce, or an all-gather, which lays the
// ranks' values one behind another along dim 0, in mesh order.
struct LocalCollective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  LocalRef value;
  std::optional<ReduceOp> op;  // where it reduces
  DimIndices mesh_dims;
  DType dtype = DType::kF32;
  std::int64_t bytes = 0;  // CollectiveStep::message_bytes
};

using LocalStep = std::variant<LocalOp, LocalCollective>;

struct LocalProgram {
  std::vector<LocalStep> steps;
  std::vector<LocalRef> outputs;

  // Appends a step and returns its first result.
  LocalRef op(std::string name,
              std::vector<std::pair<std::string, LocalOp::Value>> args);
  LocalRef collective(CollectiveKind kind, LocalRef value,
                      std::optional<ReduceOp> op, DimIndices mesh_dims,
                      DType dtype, std::int64_t bytes);
};

}  // namespace shardprop

// `LocalProgram` is what each rank runs for one strategy of one operator.
//
// It is usually the operator itself on the local tensors, and otherwise a short
// list of operators and collectives. Scalars may differ between ranks: they are
// linear in a local size or an offset of an operand (RankScalar).
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

// `LocalCollective` is a collective over mesh dims of one value that has the
// same shape on every rank of the group. It is an all-reduce or an all-gather.
// An all-gather concatenates the ranks' values along dim 0, in mesh order.
struct LocalCollective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  LocalRef value;
  std::optional<ReduceOp> op;  // reduce op of an all-reduce
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

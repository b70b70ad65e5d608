// `Decomposition` is a straight-line program of operators that computes one
// operator call. It is derived from the text of the operator definition.
//
//   _softmax(self, 1):
//     %0 = aten.amax.default(self, [1], True)
//     %1 = aten.sub.Tensor(self, %0)
//     ...
//
// If `per_rank` is false, the program computes the call on full tensors, and
// `strategy` derives the operators and collectives of each rank from it. If
// `per_rank` is true, the program is what each rank runs on its local tensors,
// with collectives and scalars that depend on the rank.
#pragma once

#include <shardprop/mesh/collective_kind.h>
#include <shardprop/ops/dim_factors.h>
#include <shardprop/ops/op_schema.h>
#include <shardprop/ops/rank_scalar.h>
#include <shardprop/placement/placement.h>
#include <shardprop/placement/tensor_meta.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace shardprop {

struct IndexSpace;

// `LocalRef` is a tensor inside a program: an input of the operator, or a
// result of an earlier step.
struct LocalRef {
  std::int32_t step = -1;  // -1: an input
  std::int32_t index = 0;  // input, or result of the step
  friend bool operator==(const LocalRef&, const LocalRef&) = default;
};

// `LocalOp` is one operator of a program.
struct LocalOp {
  using Value = std::variant<Argument, LocalRef, std::vector<LocalRef>,
                             RankScalar, std::vector<RankScalar>>;
  std::string name;  // aten.mm.default
  // Arguments by declared name; arguments at their defaults are omitted.
  std::vector<std::pair<std::string, Value>> args;
};

// `RankCollective` is a collective of a per-rank program over the mesh dims
// that shard the program's factors. It is an all-reduce or an all-gather. An
// all-gather concatenates the ranks' values along dim 0, in mesh order.
struct RankCollective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  // Whether the program needs the values of an all-gather in the order of the
  // ranks' parts. If so, the factors are sharded in mesh order.
  bool in_order = true;
  LocalRef value;
  std::optional<ReduceOp> op;  // reduce op of an all-reduce
  // Meta of the value for full tensors, and for each dim the factors of the
  // operator that form it. A rank has the part of the value that it has of
  // those factors. A dim without factors has the same size on every rank.
  TensorMeta meta;
  std::vector<DimFactors> dims;
};

// `DecompositionStep` is an operator or a collective of a program.
struct DecompositionStep {
  LocalOp op;
  // Set instead of `op`; then `op` and all fields below are empty.
  std::optional<RankCollective> collective;
  // The same call on full tensors, and its index space. In per-rank programs
  // the metas are also those of full tensors, and the index space is null.
  OpSchema schema;
  std::vector<LocalRef> operands;  // by schema.inputs
  std::shared_ptr<const IndexSpace> space;
};

struct Decomposition {
  bool per_rank = false;
  std::vector<DecompositionStep> steps;
  std::vector<LocalRef> outputs;
};

}  // namespace shardprop

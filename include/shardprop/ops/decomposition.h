// Decomposition: a straight-line program of operators that computes one
// operator call, worked out from the text in the operator's row.
//
//   _softmax(self, 1):
//     %0 = aten.amax.default(self, [1], True)
//     %1 = aten.sub.Tensor(self, %0)
//     ...
//
// Either all of the call on whole tensors, from which `strategy` derives what
// the ranks run and exchange; or, where `per_rank` is set, what each rank runs
// on its local tensors, with scalars that depend on the rank and collectives.
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

// A tensor inside a program: an input of the operator, or a result of an
// earlier step.
struct LocalRef {
  std::int32_t step = -1;  // -1: an input
  std::int32_t index = 0;  // input, or result of the step
  friend bool operator==(const LocalRef&, const LocalRef&) = default;
};

// One operator of a program.
struct LocalOp {
  using Value = std::variant<Argument, LocalRef, std::vector<LocalRef>,
                             RankScalar, std::vector<RankScalar>>;
  std::string name;  // aten.mm.default
  // By declared name; arguments at their defaults are left out.
  std::vector<std::pair<std::string, Value>> args;
};

// A collective of a per-rank program, over the mesh dims that shard what the
// program is there for: an all-reduce, or an all-gather, which lays the ranks'
// values one behind another along dim 0, in mesh order.
struct RankCollective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  LocalRef value;
  std::optional<ReduceOp> op;  // where it reduces
  // The value, as it would be of whole tensors, and by dim the factors of the
  // program's operator that it is made of: what a rank holds of the value is
  // what it holds of those. A dim of none is as long on every rank.
  TensorMeta meta;
  std::vector<DimFactors> dims;
};

struct DecompositionStep {
  LocalOp op;
  // In place of `op`, which is empty then, as is all that follows.
  std::optional<RankCollective> collective;
  // The same call on whole tensors; its index space. Of per-rank programs the
  // metas are those of whole tensors too, and there is no index space.
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

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
#include <shardprop/ops/argument.h>
#include <shardprop/placement/placement.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace shardprop {

// constant + scale * x, where x is the size of a dim of the local operand, the
// offset of the local operand in that dim, or the local size of a factor.
struct RankScalar {
  enum class Kind : std::uint8_t {
    kConstant,
    kLocalSize,
    kOffset,
    kFactorSize,
  };
  Kind kind = Kind::kConstant;
  bool of_output = false;    // operand counts outputs instead of inputs
  std::int16_t operand = 0;  // or the factor
  std::int16_t dim = 0;
  std::int64_t scale = 1;
  std::int64_t constant = 0;

  static RankScalar value(std::int64_t constant) {
    return {Kind::kConstant, false, 0, 0, 0, constant};
  }
  static RankScalar input_size(int input, int dim) {
    return {Kind::kLocalSize, false, static_cast<std::int16_t>(input),
            static_cast<std::int16_t>(dim)};
  }
  static RankScalar output_size(int output, int dim) {
    return {Kind::kLocalSize, true, static_cast<std::int16_t>(output),
            static_cast<std::int16_t>(dim)};
  }
  static RankScalar input_offset(int input, int dim) {
    return {Kind::kOffset, false, static_cast<std::int16_t>(input),
            static_cast<std::int16_t>(dim)};
  }
  static RankScalar output_offset(int output, int dim) {
    return {Kind::kOffset, true, static_cast<std::int16_t>(output),
            static_cast<std::int16_t>(dim)};
  }
  static RankScalar factor_size(int factor) {
    return {Kind::kFactorSize, false, static_cast<std::int16_t>(factor), 0};
  }
  friend bool operator==(const RankScalar&, const RankScalar&) = default;
};

// An argument of the operator that is replaced on each rank.
struct LocalArgument {
  std::string name;
  bool is_list = false;
  std::vector<RankScalar> values;  // one, unless is_list
};

// A tensor inside a local program: an input of the operator, or a result of
// an earlier step.
struct LocalRef {
  std::int32_t step = -1;  // -1: an input
  std::int32_t index = 0;  // input, or result of the step
  friend bool operator==(const LocalRef&, const LocalRef&) = default;
};

struct LocalOp {
  using Value = std::variant<Argument, LocalRef, std::vector<LocalRef>,
                             RankScalar, std::vector<RankScalar>>;
  std::string name;  // aten.mm.default
  // By declared name; arguments at their defaults are left out.
  std::vector<std::pair<std::string, Value>> args;
};

// An all-reduce over some mesh dims, of one value that every rank of the group
// holds in the same shape.
struct LocalAllReduce {
  LocalRef value;
  ReduceOp op = ReduceOp::kSum;
  DimIndices mesh_dims;
  std::int64_t bytes = 0;  // of the largest local value
};

using LocalStep = std::variant<LocalOp, LocalAllReduce>;

struct LocalProgram {
  std::vector<LocalStep> steps;
  std::vector<LocalRef> outputs;

  // Appends a step and returns its first result.
  LocalRef op(std::string name,
              std::vector<std::pair<std::string, LocalOp::Value>> args);
  LocalRef all_reduce(LocalRef value, ReduceOp op, DimIndices mesh_dims,
                      std::int64_t bytes);
};

}  // namespace shardprop

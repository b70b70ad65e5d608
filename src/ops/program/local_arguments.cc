#include "ops/program/local_arguments.h"

#include "base/index.h"

#include <shardprop/ops/index_space.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace shardprop {
namespace {

class LocalNumbers {
 public:
  LocalNumbers(const DecompositionStep& step, std::span<const StepShard> shards)
      : step_(step), shards_(shards) {}

  // Returns nullopt if the number is not a size of a factor of the operator.
  std::optional<RankScalar> of(const RankScalar& scalar) const {
    if (scalar.kind == RankScalar::Kind::kConstant) return scalar;
    DimFactors factors;
    std::int64_t full = 0;
    if (scalar.kind == RankScalar::Kind::kFactorSize) {
      factors.push_back(scalar.operand);
      full = step_.space->factors[index(scalar.operand)].size;
    } else {
      const auto i = index(scalar.operand);
      const auto dim = index(scalar.dim);
      factors = scalar.of_output ? step_.space->outputs[i].dims[dim]
                                 : step_.space->inputs[i].dims[dim];
      full = scalar.of_output ? step_.schema.outputs[i].size(scalar.dim)
                              : step_.schema.inputs[i].size(scalar.dim);
    }
    const bool is_offset = scalar.kind == RankScalar::Kind::kOffset;
    const StepShard* sharded = nullptr;
    for (const StepShard& shard : shards_) {
      if (std::find(factors.begin(), factors.end(), shard.own) ==
          factors.end()) {
        continue;
      }
      if (is_offset || sharded != nullptr) return std::nullopt;
      sharded = &shard;
    }
    if (sharded != nullptr) return size_of(*sharded, scalar, full);
    return RankScalar::value(scalar.of(is_offset ? 0 : full));
  }

 private:
  // Returns a formula of a local size as one of the operator's factor. Each element
  // of that factor is a run of full / size elements.
  static std::optional<RankScalar> size_of(const StepShard& shard,
                                           const RankScalar& scalar,
                                           std::int64_t full) {
    if (shard.size == 0 || full % shard.size != 0) return std::nullopt;
    const std::int64_t run = full / shard.size;
    if (scalar.divisor != 1 && run != 1) return std::nullopt;
    RankScalar made = RankScalar::factor_size(shard.factor);
    static_cast<RankFormula&>(made) = scalar;
    made.scale *= run;
    return made;
  }

  const DecompositionStep& step_;
  const std::span<const StepShard> shards_;
};

}  // namespace

std::optional<std::vector<LocalArgument>> local_arguments(
    const DecompositionStep& step, std::span<const StepShard> shards) {
  const LocalNumbers numbers(step, shards);
  std::vector<LocalArgument> made;
  for (const LocalArgument& argument : step.space->local_arguments) {
    LocalArgument local{argument.name, argument.is_list, {}};
    for (const RankScalar& scalar : argument.values) {
      auto value = numbers.of(scalar);
      if (!value) return std::nullopt;
      local.values.push_back(*std::move(value));
    }
    made.push_back(std::move(local));
  }
  return made;
}

}  // namespace shardprop

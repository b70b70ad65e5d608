// SpaceBuilder: what the forms build index spaces with.
//
//   SpaceBuilder b;
//   b.inputs.push_back(b.per_dim(self.shape()));   // a factor per dim
//   b.outputs.push_back(b.inputs[0]);
//   return b.bound();
#pragma once

#include "ops/op_call.h"

#include <optional>
#include <string>
#include <vector>

namespace shardprop {

// The outputs of a factor that is sharded are terms of a sum.
inline constexpr Without kTermsOfSum = Without::partial(ReduceOp::kSum);

class SpaceBuilder {
 public:
  IndexSpace space;

  // A factor of that size, lettered in order unless one is given.
  FactorId factor(std::int64_t size, char letter = 0);
  // The factors of a dim of that size: one, or none for size 1.
  DimFactors dim(std::int64_t size, char letter = 0);
  // The same, not parallel, for that reason.
  DimFactors blocked(std::int64_t size, std::string reason,
                     FactorKind kind = FactorKind::kBlocked);
  // A factor per dim.
  Operand per_dim(const Dims& shape);
  // The dims of `whole` that an operand of that shape has when it is aligned
  // on the right, as in broadcasting; dims of another size have no factor.
  Operand aligned(const Operand& whole, const Dims& shape) const;
  // Dims of none: an operand that is always whole.
  static Operand whole(int rank);

  void block(const DimFactors& dim, std::string reason,
             FactorKind kind = FactorKind::kBlocked);

  void input(Operand operand) { space.inputs.push_back(std::move(operand)); }
  // A result; what is not given follows from its factors and the row.
  void output(Operand operand, BoundResult result = {});
  void not_produced() { results_.emplace_back(std::nullopt); }

  // What sharding a factor makes of an output without it. Adds no outputs
  // afterwards.
  void without(int output, const DimFactors& factors, Without what);

  // An output without elements is one thing on all ranks, whatever is sharded.
  // Adds no outputs afterwards.
  void has_nothing(std::size_t output);

  BoundForm bound();

 private:
  std::vector<std::optional<BoundResult>> results_;
};

}  // namespace shardprop

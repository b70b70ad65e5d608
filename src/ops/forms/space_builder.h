// `SpaceBuilder` builds the index spaces of the forms.
//
//   SpaceBuilder b;
//   const Operand whole = b.per_dim(self.shape());   // a factor per dim
//   b.input(whole);
//   b.output(whole);
//   return b.bound();
#pragma once

#include "ops/op_call.h"

#include <optional>
#include <string>
#include <vector>

namespace shardprop {

// The outputs are terms of a sum if the factor is sharded.
inline constexpr Without kTermsOfSum = Without::partial(ReduceOp::kSum);

// Returns the factors of dim `d` of operand `i`. A modifier uses it, because the form
// before it may give the operand another rank.
// Error: CallError if there is no such dim.
DimFactors dim_of(const std::vector<Operand>& operands, std::size_t i,
                  std::size_t d);

class SpaceBuilder {
 public:
  IndexSpace space;

  // Adds a factor of that size. Its letter is the next in order unless `letter`
  // is given.
  FactorId factor(std::int64_t size, char letter = 0);
  // Returns the factors of a dim of that size: one, or none for size 1.
  DimFactors dim(std::int64_t size, char letter = 0);
  // Returns the factors of a dim that cannot be sharded, for that reason.
  DimFactors blocked(std::int64_t size, std::string reason,
                     FactorKind kind = FactorKind::kBlocked);
  // Returns an operand with a factor per dim.
  Operand per_dim(const Dims& shape);
  // Returns the dims of `whole` for an operand of that shape, aligned on the
  // right as in broadcasting. Dims of another size have no factor.
  Operand aligned(const Operand& whole, const Dims& shape) const;
  // Returns an operand without factors, which is always replicated.
  static Operand whole(int rank);

  void block(const DimFactors& dim, std::string reason,
             FactorKind kind = FactorKind::kBlocked);

  void input(Operand operand) { space.inputs.push_back(std::move(operand)); }
  // Adds a result; omitted fields follow from its factors and the definition.
  void output(Operand operand, BoundResult result = {});
  void not_produced() { results_.emplace_back(std::nullopt); }

  // Sets the state of an output that lacks a sharded factor. No outputs may be
  // added afterwards.
  void without(int output, const DimFactors& factors, Without what);

  // Declares that an output without elements is the same on all ranks under
  // every sharding. No outputs may be added afterwards.
  void has_nothing(std::size_t output);

  BoundForm bound();

 private:
  std::vector<std::optional<BoundResult>> results_;
};

}  // namespace shardprop

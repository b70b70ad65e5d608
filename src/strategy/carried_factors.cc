#include "strategy/carried_factors.h"

#include "base/index.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <variant>

namespace shardprop {
namespace {

// Returns whether the program needs gathered values in the order of the ranks,
// which is mesh order.
bool gathers_in_order(const Decomposition& program) {
  return std::any_of(program.steps.begin(), program.steps.end(),
                     [](const DecompositionStep& step) {
                       return step.collective &&
                              step.collective->kind ==
                                  CollectiveKind::kAllGather &&
                              step.collective->in_order;
                     });
}

Carried carried_by_kind(const IndexSpace& space, const Factor& factor) {
  if (space.is_random) return Carried::kMeshOrder;
  if (space.program != nullptr && factor.program != ProgramUse::kNever) {
    return gathers_in_order(*space.program) ? Carried::kMeshOrder
                                            : Carried::kAny;
  }
  return factor.kind == FactorKind::kParallel ? Carried::kAny
                                              : Carried::kMeshOrder;
}

// Returns the joined factor that joins all these, and perhaps other factors.
// Operand::joined_factor() is only for dims that have all of its factors.
std::optional<FactorId> factor_joining(const IndexSpace& space,
                                       const DimFactors& factors) {
  if (factors.empty()) return std::nullopt;
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    const DimFactors& joins = space.factors[f].joins;
    const bool has_all =
        std::all_of(factors.begin(), factors.end(), [&](FactorId factor) {
          return std::find(joins.begin(), joins.end(), factor) != joins.end();
        });
    if (has_all) return static_cast<FactorId>(f);
  }
  return std::nullopt;
}

// Calls visit(scalar) for every scalar that a rank computes.
template <class Visit>
void visit_scalars(const IndexSpace& space, const Visit& visit) {
  for (const LocalArgument& argument : space.local_arguments) {
    for (const RankScalar& scalar : argument.values) visit(scalar);
  }
  if (space.program == nullptr) return;
  for (const DecompositionStep& step : space.program->steps) {
    for (const auto& [name, value] : step.op.args) {
      if (const auto* scalar = std::get_if<RankScalar>(&value)) visit(*scalar);
      if (const auto* list = std::get_if<std::vector<RankScalar>>(&value)) {
        for (const RankScalar& scalar : *list) visit(scalar);
      }
    }
  }
}

}  // namespace

std::vector<Carried> carried_factors(const IndexSpace& space) {
  std::vector<Carried> carried;
  carried.reserve(space.factors.size());
  for (const Factor& factor : space.factors) {
    carried.push_back(carried_by_kind(space, factor));
  }
  visit_scalars(space, [&](const RankScalar& scalar) {
    if (scalar.kind != RankScalar::Kind::kOffset) return;
    const auto& operands = scalar.of_output ? space.outputs : space.inputs;
    const Operand& operand = operands[index(scalar.operand)];
    const auto needs_one_run = [&](FactorId factor) {
      Carried& accepted = carried[index(factor)];
      accepted = std::min(accepted, Carried::kAnyOrder);
    };
    const DimFactors& factors = operand.dims[index(scalar.dim)];
    // A program asks for the offset of factors that are joined only if it
    // shards them as one.
    if (const auto joined = factor_joining(space, factors)) {
      needs_one_run(*joined);
      return;
    }
    for (const FactorId factor : factors) needs_one_run(factor);
  });
  return carried;
}

bool accepts(Carried carried, const FactorSharding& sharding) {
  if (sharding.has_strided()) return carried == Carried::kAny;
  return carried != Carried::kMeshOrder || sharding.has_default_order();
}

}  // namespace shardprop

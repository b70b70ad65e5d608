#include "strategy/offered_shardings.h"

#include "base/index.h"
#include "strategy/carried_factors.h"

#include <shardprop/base/error.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace shardprop {
namespace {

struct FactorCut {
  FactorId factor;
  std::int32_t mesh_dim;
  std::int64_t pieces;
};

// Digit is a part of the index in a tensor dim: a range of positions within one
// factor.
struct Digit {
  FactorId factor;
  std::int64_t size;
};

// Cuts the digits of one tensor dim, major first. An even cut over n ranks that
// divides a dim into p pieces removes n positions from the digit after the
// digits of the pieces.
class CutDigits {
 public:
  CutDigits(const IndexSpace& space, const DimFactors& factors) {
    for (const FactorId factor : factors) {
      digits_.push_back({factor, space.factor(factor).size});
    }
  }

  // Returns nullopt if the cut is uneven or divides two factors.
  std::optional<FactorCut> cut(std::int32_t mesh_dim, std::int64_t parts,
                               std::int64_t pieces) {
    std::size_t at = 0;
    for (; at < digits_.size() && pieces > 1; ++at) {
      const std::int64_t size = digits_[at].size;
      if (pieces % size == 0) {
        pieces /= size;
        continue;
      }
      if (size % pieces != 0) return std::nullopt;
      const Digit rest = {digits_[at].factor, size / pieces};
      digits_[at].size = pieces;
      pieces = 1;
      digits_.insert(digits_.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                     rest);
    }
    while (at < digits_.size() && digits_[at].size == 1) ++at;
    if (pieces > 1 || at == digits_.size() || digits_[at].size % parts != 0) {
      return std::nullopt;
    }
    FactorCut made = {digits_[at].factor, mesh_dim, 1};
    for (std::size_t d = 0; d < at; ++d) {
      if (digits_[d].factor == made.factor) made.pieces *= digits_[d].size;
    }
    digits_[at].size /= parts;
    return made;
  }

 private:
  std::vector<Digit> digits_;
};

// Returns the cuts of a tensor dim as those of one factor.
std::vector<FactorCut> as_cuts_of(FactorId factor, const Layout& layout,
                                  int dim) {
  std::vector<FactorCut> cuts;
  for (const std::int32_t m : layout.cuts(dim)) {
    cuts.push_back({factor, m, layout[m].split_factor()});
  }
  return cuts;
}

// Returns the cuts of each factor of a tensor dim, in shard order; those of its
// joined factor, or none, if they are not cuts of single factors.
std::vector<FactorCut> cuts_of_dim(const IndexSpace& space,
                                   const DeviceMesh& mesh, const Layout& layout,
                                   int dim, const Operand& operand) {
  const DimFactors& factors = operand.dims[index(dim)];
  if (factors.size() == 1) return as_cuts_of(factors[0], layout, dim);
  std::vector<FactorCut> out;
  CutDigits digits(space, factors);
  for (const std::int32_t m : layout.cuts(dim)) {
    const auto cut = digits.cut(m, mesh.size(m), layout[m].split_factor());
    if (!cut) {
      const auto joined = operand.joined_factor(dim);
      return joined ? as_cuts_of(*joined, layout, dim)
                    : std::vector<FactorCut>{};
    }
    out.push_back(*cut);
  }
  return out;
}

// Returns the sharding that consists of those cuts that are of the factor.
FactorSharding sharding_of(const std::vector<FactorCut>& cuts, FactorId factor,
                           int mesh_ndim) {
  Placements placements(index(mesh_ndim));
  ShardOrder order(index(mesh_ndim));
  std::int8_t place = 0;
  for (const FactorCut& cut : cuts) {
    if (cut.factor != factor) continue;
    placements[index(cut.mesh_dim)] =
        Placement::strided_shard(0, static_cast<int>(cut.pieces));
    order[index(cut.mesh_dim)] = place++;
  }
  auto sharding = FactorSharding::create(std::move(placements), order);
  if (!sharding) throw InternalError("the sharding of a factor is malformed");
  return *std::move(sharding);
}

bool is_in_mesh_order(const FactorSharding& sharding) {
  return !sharding.has_strided() && sharding.has_default_order();
}

}  // namespace

FactorShardings implied_shardings(const IndexSpace& space,
                                  const DeviceMesh& mesh,
                                  const Operand& operand,
                                  const Layout& layout) {
  Placements placements(index(mesh.ndim()));
  ShardOrder order(index(mesh.ndim()));
  std::vector<std::int8_t> places(space.factors.size(), 0);
  for (std::size_t d = 0; d < operand.dims.size(); ++d) {
    for (const FactorCut& cut :
         cuts_of_dim(space, mesh, layout, static_cast<int>(d), operand)) {
      const auto m = index(cut.mesh_dim);
      placements[m] =
          Placement::strided_shard(cut.factor, static_cast<int>(cut.pieces));
      order[m] = places[index(cut.factor)]++;
    }
  }
  auto shardings = Layout::create(std::move(placements), std::move(order));
  if (!shardings) throw InternalError("the shardings of factors are malformed");
  return FactorShardings(*std::move(shardings));
}

std::vector<OfferedSharding> offered_shardings(
    const IndexSpace& space, const DeviceMesh& mesh,
    std::span<const Operand> operands, std::span<const Layout> given) {
  std::vector<OfferedSharding> offered;
  std::vector<Carried> carried;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (is_in_mesh_order(given[i])) continue;
    if (carried.empty()) carried = carried_factors(space);
    const std::vector<DimFactors>& dims = operands[i].dims;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const std::vector<FactorCut> cuts =
          cuts_of_dim(space, mesh, given[i], static_cast<int>(d), operands[i]);
      const auto joined = operands[i].joined_factor(static_cast<int>(d));
      DimFactors factors = dims[d];
      if (joined) factors.push_back(*joined);
      for (const FactorId factor : factors) {
        FactorSharding sharding =
            sharding_of(factor == joined
                            ? as_cuts_of(*joined, given[i], static_cast<int>(d))
                            : cuts,
                        factor, mesh.ndim());
        const auto is_same = [&](const OfferedSharding& other) {
          return other.factor == factor && other.sharding == sharding;
        };
        if (!is_in_mesh_order(sharding) &&
            accepts(carried[index(factor)], sharding) &&
            std::none_of(offered.begin(), offered.end(), is_same)) {
          offered.push_back({std::move(sharding), factor});
        }
      }
    }
  }
  return offered;
}

}  // namespace shardprop

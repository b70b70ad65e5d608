#include "strategy/sharding_choices.h"

#include "base/index.h"

#include <shardprop/base/error.h>
#include <shardprop/placement/tensor_spec.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace shardprop {
namespace {

// The most combinations of one assignment. Inputs with two factors of two
// unusual shardings each make nine.
constexpr std::size_t kMostChoices = 64;

// Returns whether the sharding uses exactly the mesh dims of the factor.
bool has_dims_of(const FactorSharding& sharding, const DeviceMesh& mesh,
                 const Assignment& assignment, std::int16_t factor) {
  for (std::size_t m = 0; m < assignment.size(); ++m) {
    const int mesh_dim = static_cast<int>(m);
    if (mesh.size(mesh_dim) == 1) continue;
    if (sharding[mesh_dim].is_shard() != (assignment[m] == factor)) {
      return false;
    }
  }
  return true;
}

// Returns the different shardings of the factor that are not in mesh order.
std::vector<FactorSharding> shardings_of(
    const IndexSpace& space, const DeviceMesh& mesh, Carried carried,
    const Assignment& assignment, int factor,
    std::span<const OfferedSharding> offered) {
  std::vector<FactorSharding> out;
  if (carried == Carried::kMeshOrder) return out;
  const std::array<std::int64_t, 1> shape = {space.factor(factor).size};
  for (const OfferedSharding& offer : offered) {
    if (offer.factor && *offer.factor != factor) continue;
    if (!has_dims_of(offer.sharding, mesh, assignment,
                     static_cast<std::int16_t>(factor))) {
      continue;
    }
    FactorSharding form = canonical(offer.sharding, mesh, shape);
    if (!form.has_strided() && form.has_default_order()) continue;
    if (!accepts(carried, form)) continue;
    if (std::find(out.begin(), out.end(), form) == out.end()) {
      out.push_back(std::move(form));
    }
  }
  return out;
}

// Replaces the cuts of the factor by those of its sharding.
void set_sharding(Placements& placements, ShardOrder& order, int factor,
                  const FactorSharding& sharding) {
  for (std::size_t m = 0; m < placements.size(); ++m) {
    const Placement placement = sharding[static_cast<int>(m)];
    if (!placement.is_shard()) continue;
    placements[m] = placement.with_dim(factor);
    order[m] = sharding.shard_order()[m];
  }
}

}  // namespace

std::vector<Layout> sharding_choices(const IndexSpace& space,
                                     const DeviceMesh& mesh,
                                     const std::vector<Carried>& carried,
                                     const Assignment& assignment,
                                     std::span<const OfferedSharding> offered) {
  if (offered.empty()) return {};
  Placements in_order(assignment.size());
  DimIndices factors;
  for (std::size_t m = 0; m < assignment.size(); ++m) {
    const std::int16_t choice = assignment[m];
    if (choice == kUnassigned || index(choice) >= space.factors.size()) {
      continue;
    }
    in_order[m] = Placement::shard(choice);
    if (std::find(factors.begin(), factors.end(), choice) == factors.end()) {
      factors.push_back(choice);
    }
  }
  auto start = Layout::create(std::move(in_order));
  if (!start) throw InternalError("the shardings of factors are malformed");
  std::vector<Layout> choices = {*std::move(start)};
  for (const std::int32_t factor : factors) {
    const std::vector<FactorSharding> shardings = shardings_of(
        space, mesh, carried[index(factor)], assignment, factor, offered);
    const std::size_t before = choices.size();
    for (const FactorSharding& sharding : shardings) {
      for (std::size_t c = 0; c < before && choices.size() <= kMostChoices;
           ++c) {
        Placements placements = choices[c].placements();
        ShardOrder order = choices[c].shard_order();
        set_sharding(placements, order, factor, sharding);
        auto made = Layout::create(std::move(placements), std::move(order));
        if (!made) throw InternalError("shardings of factors do not fit");
        choices.push_back(*std::move(made));
      }
    }
  }
  choices.erase(choices.begin());
  return choices;
}

bool accept(const IndexSpace& space, const DeviceMesh& mesh,
            const std::vector<Carried>& carried,
            const FactorShardings& shardings) {
  for (std::size_t f = 0; f < space.factors.size(); ++f) {
    const std::array<std::int64_t, 1> shape = {space.factors[f].size};
    const FactorSharding sharding = shardings.of(static_cast<int>(f));
    if (!accepts(carried[f], canonical(sharding, mesh, shape))) return false;
  }
  return true;
}

}  // namespace shardprop

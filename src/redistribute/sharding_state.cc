#include "redistribute/sharding_state.h"

#include "base/index.h"
#include "base/try.h"

#include <algorithm>
#include <set>
#include <utility>

namespace shardprop::redistribute {
namespace {

// Adds the products of the sizes of nonempty sets of mesh dims other than
// `without`.
void add_mesh_factors(const ActiveDims& active, int without,
                      std::set<std::int64_t>& factors) {
  for (Mask mask = 1; mask < Mask{1} << active.count; ++mask) {
    if ((mask >> without & 1U) != 0) continue;
    std::int64_t product = 1;
    for (int i = 0; i < active.count; ++i) {
      if ((mask >> i & 1U) != 0) {
        product *= active.sizes[index(i)];
      }
    }
    factors.insert(product);
  }
}

}  // namespace

ActiveDims::ActiveDims(const DeviceMesh& mesh) {
  for (std::int32_t i = 0; i < mesh.ndim(); ++i) {
    if (mesh.size(i) == 1) continue;
    ++count;
    mesh_dims.push_back(i);
    sizes.push_back(mesh.size(i));
  }
}

Result<Alphabet> Alphabet::create(const ActiveDims& active,
                                  const TensorMeta& meta,
                                  std::span<const Layout> endpoints,
                                  SplitFactors split_factors) {
  std::set<std::pair<int, std::int64_t>> strided;  // tensor dim, split factor
  std::set<Placement> partials;
  for (const Layout& layout : endpoints) {
    for (const std::int32_t mesh_dim : active.mesh_dims) {
      const Placement placement = layout[mesh_dim];
      if (placement.is_partial()) partials.insert(placement);
      if (!placement.is_strided()) continue;
      strided.emplace(placement.dim(), placement.split_factor());
    }
  }
  if (split_factors != SplitFactors::kEndpoints) {
    std::set<int> dims;
    for (const auto& [dim, factor] : strided) dims.insert(dim);
    if (split_factors == SplitFactors::kAll) {
      for (int d = 0; d < meta.rank(); ++d) dims.insert(d);
    }
    std::set<std::int64_t> factors;
    for (int i = 0; i < active.count; ++i) add_mesh_factors(active, i, factors);
    for (const int dim : dims) {
      for (const std::int64_t factor : factors) strided.emplace(dim, factor);
    }
  }
  const std::size_t count = 1 + static_cast<std::size_t>(meta.rank()) +
                            strided.size() + partials.size();
  if (count > 255) {
    return fail(ErrorCode::kRedistributeMeshTooLarge,
                "layouts of " + to_string(meta) + " would use " +
                    std::to_string(count) + " placements, more than 255",
                "plan without the mesh's own split factors");
  }
  Alphabet alphabet;
  alphabet.symbols_.push_back({});
  for (int d = 0; d < meta.rank(); ++d) {
    alphabet.symbols_.push_back(
        {Placement::shard(d), static_cast<std::int16_t>(d), 1, false});
  }
  for (const auto& [dim, factor] : strided) {
    const auto pieces = static_cast<std::int32_t>(factor);
    alphabet.symbols_.push_back({Placement::strided_shard(dim, pieces),
                                 static_cast<std::int16_t>(dim), pieces,
                                 false});
  }
  alphabet.strided_ = !strided.empty();
  alphabet.first_partial_ = static_cast<std::uint8_t>(alphabet.symbols_.size());
  for (const Placement& partial : partials) {
    alphabet.symbols_.push_back({partial, -1, 1, true});
  }
  return alphabet;
}

std::optional<std::uint8_t> Alphabet::find(Placement placement) const {
  for (std::size_t i = 0; i < symbols_.size(); ++i) {
    if (symbols_[i].placement == placement) {
      return static_cast<std::uint8_t>(i);
    }
  }
  return std::nullopt;
}

std::optional<State> to_state(const Layout& layout, const ActiveDims& active,
                              const Alphabet& alphabet) {
  State state;
  for (std::size_t i = 0; i < active.mesh_dims.size(); ++i) {
    const std::int32_t mesh_dim = active.mesh_dims[i];
    const auto symbol = alphabet.find(layout[mesh_dim]);
    if (!symbol) return std::nullopt;
    state.symbol[i] = *symbol;
    if (!layout[mesh_dim].is_shard()) continue;
    // Mesh dims of size 1 leave gaps in the order, which are closed here.
    for (std::size_t j = 0; j < active.mesh_dims.size(); ++j) {
      const std::int32_t other = active.mesh_dims[j];
      if (layout[other].shards(layout[mesh_dim].dim()) &&
          layout.shard_order()[index(other)] <
              layout.shard_order()[index(mesh_dim)]) {
        ++state.order[i];
      }
    }
  }
  return state;
}

Layout to_layout(const State& state, const ActiveDims& active,
                 const Alphabet& alphabet, const Layout& others) {
  Placements placements = others.placements();
  ShardOrder order(placements.size());
  for (std::size_t i = 0; i < active.mesh_dims.size(); ++i) {
    const auto at = index(active.mesh_dims[i]);
    placements[at] = alphabet[state.symbol[i]].placement;
    order[at] = static_cast<std::int8_t>(state.order[i]);
  }
  // Cuts over mesh dims of size 1 have no effect at any place, so they come
  // last.
  for (std::size_t i = 0; i < placements.size(); ++i) {
    const auto mesh_dim = static_cast<std::int32_t>(i);
    if (!placements[i].is_shard() ||
        std::find(active.mesh_dims.begin(), active.mesh_dims.end(), mesh_dim) !=
            active.mesh_dims.end()) {
      continue;
    }
    for (std::size_t j = 0; j < placements.size(); ++j) {
      const bool placed =
          j < i ||
          std::find(active.mesh_dims.begin(), active.mesh_dims.end(),
                    static_cast<std::int32_t>(j)) != active.mesh_dims.end();
      if (j != i && placed && placements[j].shards(placements[i].dim())) {
        ++order[i];
      }
    }
  }
  auto layout = Layout::create(std::move(placements), std::move(order));
  if (!layout) throw InternalError("a planner's state is not a layout");
  return *std::move(layout);
}

std::optional<State> canonical_state(const State& state,
                                     const ActiveDims& active,
                                     const Alphabet& alphabet,
                                     const DeviceMesh& mesh,
                                     std::span<const std::int64_t> shape) {
  const Layout layout =
      to_layout(state, active, alphabet, Layout::replicated(mesh.ndim()));
  if (!layout.has_strided()) return state;
  return to_state(canonical(layout, mesh, shape), active, alphabet);
}

}  // namespace shardprop::redistribute

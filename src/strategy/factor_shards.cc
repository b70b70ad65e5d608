#include "strategy/factor_shards.h"

#include <shardprop/base/inline_vector.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace shardprop {
namespace {

// The different sizes of the shards of a factor. There are few of them.
using Sizes = InlineVector<std::int64_t, 4>;

void add_size(Sizes& sizes, std::int64_t size) {
  if (std::find(sizes.begin(), sizes.end(), size) == sizes.end()) {
    sizes.push_back(size);
  }
}

// Returns the different sizes of shards if each of `sizes` is cut into chunks.
Sizes cut_sizes(const Sizes& sizes, std::int64_t parts) {
  Sizes out;
  for (const std::int64_t size : sizes) {
    const std::int64_t full = chunk(size, parts, 0).size();
    add_size(out, full);
    // After the full chunks comes one shorter chunk, then only empty ones.
    if (full * parts == size) continue;
    const std::int64_t whole = full == 0 ? 0 : size / full;
    add_size(out, size - whole * full);
    if (whole + 1 < parts) add_size(out, 0);
  }
  return out;
}

// Does the same if each of `pieces` pieces of a shard is cut.
Sizes strided_sizes(const Sizes& sizes, std::int64_t parts,
                    std::int64_t pieces) {
  Sizes out;
  for (const std::int64_t size : sizes) {
    const std::int64_t full = chunk(size, pieces, 0).size();
    const std::int64_t count = full == 0 ? 0 : size / full;
    const std::int64_t rest = size - count * full;
    for (std::int64_t i = 0; i < parts; ++i) {
      add_size(out, count * chunk(full, parts, i).size() +
                        chunk(rest, parts, i).size());
    }
  }
  return out;
}

// Returns the longest run with chunk(size * run) = chunk(size) * run. For such
// a run, the last chunks lack fewer elements than there are parts, so no chunk
// becomes shorter.
std::int64_t longest_run_of(std::int64_t size, std::int64_t parts) {
  const std::int64_t lacking = chunk(size, parts, 0).size() * parts - size;
  return lacking == 0 ? std::numeric_limits<std::int64_t>::max()
                      : (parts - 1) / lacking;
}

// A factor after some of its cuts.
class CutFactor {
 public:
  explicit CutFactor(std::int64_t size) {
    sizes_.push_back(size);
    shards_.largest = size;
  }

  // Cuts each of `pieces` pieces of every shard into `parts` chunks.
  void cut(std::int32_t mesh_dim, std::int64_t parts, std::int64_t pieces) {
    shards_.mesh_dims.push_back(mesh_dim);
    if (pieces > 1) {
      shards_.split_factors.resize(shards_.mesh_dims.size(), 1);
      shards_.split_factors.back() = static_cast<std::int32_t>(pieces);
    } else if (!shards_.split_factors.empty()) {
      shards_.split_factors.push_back(1);
    }
    // Most factors are cut into equal shards.
    if (sizes_.size() == 1 && sizes_[0] % (parts * pieces) == 0) {
      shards_.largest = sizes_[0] /= parts;
      return;
    }
    shards_.even = shards_.even && shards_.largest % (parts * pieces) == 0;
    for (const std::int64_t size : sizes_) {
      if (size % pieces != 0) shards_.equal_pieces = false;
      shards_.longest_run =
          std::min(shards_.longest_run, longest_run_of(size / pieces, parts));
    }
    sizes_ = pieces == 1 ? cut_sizes(sizes_, parts)
                         : strided_sizes(sizes_, parts, pieces);
    shards_.largest = *std::max_element(sizes_.begin(), sizes_.end());
  }

  std::size_t num_cuts() const { return shards_.mesh_dims.size(); }

  // Returns the shards without the mesh dims of the first cuts.
  FactorShards shards_after(std::size_t before) && {
    const auto drop = [before](DimIndices& of_cuts) {
      DimIndices kept;
      for (std::size_t i = before; i < of_cuts.size(); ++i) {
        kept.push_back(of_cuts[i]);
      }
      of_cuts = std::move(kept);
    };
    if (before > 0) {
      drop(shards_.mesh_dims);
      drop(shards_.split_factors);
    }
    shards_.smallest = *std::min_element(sizes_.begin(), sizes_.end());
    shards_.alike =
        std::all_of(sizes_.begin(), sizes_.end(), [&](std::int64_t size) {
          return size == 0 || size == shards_.largest;
        });
    return std::move(shards_);
  }

 private:
  FactorShards shards_;
  Sizes sizes_;  // of shards, each once
};

}  // namespace

FactorShards factor_shards(const IndexSpace& space, const DeviceMesh& mesh,
                           const Assignment& assignment,
                           const Layout* shardings, int factor) {
  CutFactor cut(space.factor(factor).size);
  const auto cut_by = [&](int given) {
    if (shardings != nullptr) {
      for (const std::int32_t m : shardings->cuts(given)) {
        cut.cut(m, mesh.size(m), (*shardings)[m].split_factor());
      }
      return;
    }
    for (std::size_t m = 0; m < assignment.size(); ++m) {
      if (assignment[m] != given) continue;
      const auto mesh_dim = static_cast<std::int32_t>(m);
      cut.cut(mesh_dim, mesh.size(mesh_dim), 1);
    }
  };
  // The first of the joined factors is cut before.
  const DimFactors& joins = space.factor(factor).joins;
  if (!joins.empty()) cut_by(joins[0]);
  const std::size_t before = cut.num_cuts();
  cut_by(factor);
  return std::move(cut).shards_after(before);
}

FactorShards factor_shards(const LocalContext& context, int factor) {
  return factor_shards(context.space, context.mesh, context.strategy.assignment,
                       context.shardings(), factor);
}

bool averages_as_sums(const IndexSpace& space,
                      const std::vector<FactorShards>& shards) {
  for (std::size_t f = 0; f < shards.size(); ++f) {
    if (space.factors[f].program == ProgramUse::kWhenUneven &&
        !shards[f].even) {
      return true;
    }
  }
  return false;
}

}  // namespace shardprop
